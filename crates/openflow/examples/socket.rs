//! A switch without ports that `ovs-ofctl` can drive over a Unix socket:
//!
//! ```text
//! cargo run -p classyard-openflow --example socket -- br0.socket
//! ovs-ofctl -O OpenFlow13 add-flow unix:br0.socket 'tcp,tp_dst=80 actions=drop'
//! ovs-ofctl -O OpenFlow13 dump-flows unix:br0.socket
//! ovs-ofctl -O OpenFlow13 monitor unix:br0.socket watch:
//! ```
//!
//! The agent opens no socket itself. A program around it passes bytes in both directions, in
//! its own way: here each connection has a thread that reads and a thread that writes, and all
//! threads share the agent.

#![allow(clippy::print_stderr)] // an example

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
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

    /// Takes bytes of a controller.
    fn receive(&mut self, session: SessionId, bytes: &[u8]) {
        self.with(|agent, around| agent.receive(session, bytes, around));
        self.send_packets();
        for (_, fault) in self.agent.take_ended() {
            eprintln!("a session ends: {fault}");
        }
    }

    /// Notes that the unsent bytes of a session were sent.
    fn sent(&mut self, session: SessionId, count: usize) {
        self.agent.sent(session, count);
        self.with(|agent, around| agent.proceed(session, around));
        self.send_packets();
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

/// The switch, and a signal that sessions may have bytes to send or have ended.
struct Shared {
    switch: Mutex<Switch>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Switch> {
        self.switch.lock().expect("no thread panics")
    }

    /// Waits until a session has unsent bytes, and returns them. After the session's end, returns
    /// no bytes.
    fn unsent(&self, session: SessionId) -> Vec<u8> {
        let waits = |switch: &mut Switch| {
            switch.agent.counts(session).is_some() && switch.agent.unsent(session).is_empty()
        };
        let switch = self.changed.wait_while(self.lock(), waits);
        let switch = switch.expect("no thread panics");
        switch.agent.unsent(session).to_vec()
    }

    /// Sends the bytes of a session until its end.
    fn send(&self, session: SessionId, mut stream: UnixStream) -> io::Result<()> {
        loop {
            let unsent = self.unsent(session);
            if unsent.is_empty() {
                return Ok(());
            }
            stream.write_all(&unsent)?;
            self.lock().sent(session, unsent.len());
            // The session may read again.
            self.changed.notify_all();
        }
    }

    /// Passes the bytes of a controller to the agent, until the other end closes the connection.
    fn receive(&self, session: SessionId, mut stream: UnixStream) -> io::Result<()> {
        let mut buffer = [0; 65_536];
        loop {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            self.lock().receive(session, &buffer[..count]);
            self.changed.notify_all();
            // Waits until the controller has read enough of its answers.
            let waits = |switch: &mut Switch| {
                let agent = &switch.agent;
                !agent.reads(session) && !agent.unsent(session).is_empty()
            };
            drop(self.changed.wait_while(self.lock(), waits));
        }
    }
}

/// Serves one connection.
fn serve(shared: &Arc<Shared>, stream: UnixStream) -> io::Result<()> {
    let session = shared
        .lock()
        .with(|agent, around| agent.connect(around.now));
    let (sender, copy) = (Arc::clone(shared), stream.try_clone()?);
    let sending = std::thread::spawn(move || sender.send(session, copy));
    let received = shared.receive(session, stream);
    shared.lock().agent.disconnect(session);
    shared.changed.notify_all();
    let sent = sending.join().expect("no thread panics");
    received.and(sent)
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
    let switch = Switch {
        agent: Agent::new(identity),
        pipeline,
        worker,
        start: Instant::now(),
    };
    let shared = Arc::new(Shared {
        switch: Mutex::new(switch),
        changed: Condvar::new(),
    });
    for stream in UnixListener::bind(path)?.incoming() {
        let (shared, stream) = (Arc::clone(&shared), stream?);
        std::thread::spawn(move || {
            if let Err(error) = serve(&shared, stream) {
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
