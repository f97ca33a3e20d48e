//! A switch without ports that `ovs-ofctl` can drive over a Unix socket:
//!
//! ```text
//! cargo run -p classyard-openflow --example socket -- br0.socket
//! ovs-ofctl -O OpenFlow13 add-flow unix:br0.socket 'tcp,tp_dst=80 actions=drop'
//! ovs-ofctl -O OpenFlow13 dump-flows unix:br0.socket
//! ```
//!
//! The agent opens no socket itself. A program around it passes bytes in both directions, in
//! its own way: here each connection has a thread, and all threads share the agent.

#![allow(clippy::print_stderr)] // an example

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use classyard::EngineSpec;
use classyard_datapath::pipeline::{Discard, Pipeline, Worker};
use classyard_datapath::{Packet, TableSettings};
use classyard_openflow::agent::{Agent, PortCounts, SessionId, Surroundings, SwitchIdentity};

/// The agent, its pipeline with a worker, and the clock.
struct Switch {
    agent: Agent,
    pipeline: Pipeline,
    worker: Worker,
    start: Instant,
}

impl Switch {
    fn with<T>(&mut self, act: impl FnOnce(&mut Agent, &mut Surroundings<'_>) -> T) -> T {
        let mut around = Surroundings {
            pipeline: &mut self.pipeline,
            port_counts: &|_| PortCounts::default(),
            now: self.start.elapsed(),
        };
        act(&mut self.agent, &mut around)
    }

    /// Takes bytes, and returns the answers.
    fn answers(&mut self, session: SessionId, received: &[u8]) -> Vec<u8> {
        self.with(|agent, around| agent.receive(session, received, around));
        self.send_packets();
        let mut answers = Vec::new();
        while !self.agent.unsent(session).is_empty() {
            let unsent = self.agent.unsent(session);
            let count = unsent.len();
            answers.extend_from_slice(unsent);
            self.agent.sent(session, count);
            self.with(|agent, around| agent.proceed(session, around));
        }
        answers
    }
}

impl Switch {
    /// Carries out the actions of the controllers' packets. The switch has no ports, so all are
    /// dropped.
    fn send_packets(&mut self) {
        for job in self.agent.take_jobs() {
            let packet = Packet::new(&job.frame, job.in_port.0);
            let time = self.start.elapsed();
            if let Err(error) = self
                .worker
                .execute(&job.actions, &packet, time, &mut Discard)
            {
                eprintln!("a packet of the controller: {error}");
            }
            if let Some(session) = self.agent.job_done(job.number) {
                self.with(|agent, around| agent.proceed(session, around));
            }
        }
    }
}

/// Serves one connection until its other end or a fault ends it.
fn serve(switch: &Mutex<Switch>, mut stream: UnixStream) -> io::Result<()> {
    let lock = || switch.lock().expect("no thread panics");
    let session = lock().with(|agent, around| agent.connect(around.now));
    let mut buffer = [0; 65_536];
    let mut count = 0;
    loop {
        let answers = lock().answers(session, &buffer[..count]);
        stream.write_all(&answers)?;
        for (_, fault) in lock().agent.take_ended() {
            eprintln!("the session ends: {fault}");
        }
        count = stream.read(&mut buffer)?;
        if count == 0 {
            lock().agent.disconnect(session);
            return Ok(());
        }
    }
}

/// Serves all connections to a socket at `path`.
pub(crate) fn run(path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let identity = SwitchIdentity {
        datapath_id: 1,
        manufacturer: "classyard".to_owned(),
        hardware: "none".to_owned(),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        serial_number: String::new(),
        name: "br0".to_owned(),
    };
    let settings = TableSettings::new(EngineSpec::parse("tuplemerge")?)?;
    let mut pipeline = Pipeline::new(settings);
    let worker = pipeline.worker();
    let switch = Arc::new(Mutex::new(Switch {
        agent: Agent::new(identity),
        pipeline,
        worker,
        start: Instant::now(),
    }));
    for stream in UnixListener::bind(path)?.incoming() {
        let (switch, stream) = (Arc::clone(&switch), stream?);
        std::thread::spawn(move || {
            if let Err(error) = serve(&switch, stream) {
                eprintln!("the connection ends: {error}");
            }
        });
    }
    Ok(())
}

#[allow(dead_code)] // a test calls `run`
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("br0.socket".to_owned());
    eprintln!("listening on {path}");
    run(&path)
}
