//! A switch that runs in this process, with ports in memory, and a controller.

#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use classyard_datapath::flow::{Command, FlowMod, Instructions};
use classyard_datapath::packet::Offload;
use classyard_datapath::{Action, Field, FlowMatch, MatchField, PortNo};
use classyard_openflow::bundle::{BundleAdd, BundleControl, BundleStep, flag};
use classyard_openflow::multipart::Nothing;
use classyard_openflow::switch::Hello;
use classyard_openflow::{Code, Message};
use classyard_ports::MemoryPeer;
use classyard_switch::config::{Address, SwitchSettings};
use classyard_switch::{StopHandle, Switch, SwitchError};

/// The longest wait for anything that must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running switch.
pub(crate) struct Running {
    pub(crate) folder: PathBuf,
    /// The other ends of the ports 1, 2 and so on.
    pub(crate) peers: Vec<MemoryPeer>,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<(), SwitchError>>>,
    /// The number of the thread for the system.
    number: i32,
}

impl Running {
    /// Starts a switch with ports in memory.
    pub(crate) fn start(ports: u32, workers: usize) -> Running {
        Running::with(ports, |settings| settings.workers = workers)
    }

    /// Starts a switch with changed settings.
    pub(crate) fn with(ports: u32, change: impl FnOnce(&mut SwitchSettings)) -> Running {
        Running::after(|| (), ports, change)
    }

    /// Starts a switch in a thread that has called `prepare`.
    pub(crate) fn after(
        prepare: impl FnOnce() + Send + 'static,
        ports: u32,
        change: impl FnOnce(&mut SwitchSettings),
    ) -> Running {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("classyard-switch-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut settings = SwitchSettings {
            run_dir: folder.clone(),
            listeners: vec![Address::Unix(folder.join("openflow"))],
            ..SwitchSettings::default()
        };
        change(&mut settings);
        let mut switch = Switch::new(settings);
        let peers = (1..=ports).map(|port| switch.memory_port(port, &format!("port{port}")));
        let peers = peers.collect();
        let stop = switch.stop_handle();
        let (sender, ready) = mpsc::channel();
        let (number_sender, number) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let number = rustix::thread::gettid().as_raw_nonzero().get();
            // The test waits for it.
            let _waiting = number_sender.send(number);
            prepare();
            switch.run(|_| {
                // The test waits for it, unless it has failed.
                let _failed = sender.send(());
            })
        });
        let mut running = Running {
            folder,
            peers,
            stop,
            thread: Some(thread),
            number: number.recv().expect("a thread"),
        };
        if ready.recv_timeout(PATIENCE).is_err() {
            panic!("the switch does not start: {:?}", running.end());
        }
        running
    }

    /// Runs a second switch of the same name in a folder.
    ///
    /// # Errors
    /// The error that ends it. It does not end without one.
    pub(crate) fn try_in(folder: &Path) -> Result<(), SwitchError> {
        let settings = SwitchSettings {
            run_dir: folder.to_owned(),
            ..SwitchSettings::default()
        };
        let switch = Switch::new(settings);
        let stop = switch.stop_handle();
        switch.run(|_| stop.stop())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("openflow")
    }

    /// Returns the number of the agent's thread for the system.
    pub(crate) fn thread_number(&self) -> i32 {
        self.number
    }

    pub(crate) fn controller(&self) -> Controller {
        Controller::connect(UnixStream::connect(self.socket()).expect("a listening switch"))
    }

    /// Sends a frame to a port.
    pub(crate) fn send(&self, port: u32, frame: &[u8]) {
        let peer = &self.peers[port as usize - 1];
        assert!(peer.send(0, frame, Offload::NONE), "room for a frame");
    }

    /// Receives the next frame that a port sent.
    pub(crate) fn receive(&self, port: u32) -> Vec<u8> {
        let peer = &self.peers[port as usize - 1];
        let what = format!("a frame from port {port}");
        wait(&what, || peer.receive()).0
    }

    /// Returns the frames that a port has sent by now.
    pub(crate) fn received(&self, port: u32) -> Vec<Vec<u8>> {
        let peer = &self.peers[port as usize - 1];
        std::iter::from_fn(|| peer.receive())
            .map(|(frame, _)| frame)
            .collect()
    }

    fn end(&mut self) -> Option<Result<(), SwitchError>> {
        self.stop.stop();
        let thread = self.thread.take()?;
        thread.join().ok()
    }

    /// Stops the switch, which ends without an error.
    pub(crate) fn stop(mut self) {
        let ended = self.end().expect("no panic");
        ended.expect("no error");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

/// A frame of 60 bytes with a number.
pub(crate) fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

pub(crate) fn output(port: PortNo) -> Action {
    Action::Output {
        port,
        max_len: 0xffff,
    }
}

/// An entry that sends the packets of a port to another one, or to the controller.
pub(crate) fn forward_to(in_port: u32, out: PortNo) -> Message {
    let flow = FlowMatch::new([MatchField::exact(Field::InPort, in_port.into())]);
    Message::FlowMod(FlowMod {
        instructions: Arc::new(Instructions {
            apply: vec![output(out)],
            ..Instructions::default()
        }),
        ..FlowMod::new(Command::Add, flow.expect("a match"))
    })
}

/// An entry that sends the packets of a port to another port.
pub(crate) fn forward(in_port: u32, out: u32) -> Message {
    forward_to(in_port, PortNo(out))
}

/// Calls a function until it returns a value.
pub(crate) fn wait<T>(what: &str, mut get: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = get() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "no {what}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// A connection to the switch.
pub(crate) struct Controller {
    pub(crate) stream: UnixStream,
    next_xid: u32,
}

impl Controller {
    pub(crate) fn connect(stream: UnixStream) -> Controller {
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout of a socket");
        let mut controller = Controller {
            stream,
            next_xid: 1,
        };
        controller.send(&Message::Hello(Hello::only_1_3()));
        assert!(matches!(controller.read().1, Message::Hello(_)));
        controller
    }

    /// Sends a message. Returns its number.
    pub(crate) fn send(&mut self, message: &Message) -> u32 {
        let xid = self.next_xid;
        self.next_xid += 1;
        let bytes = message.to_bytes(xid);
        self.stream.write_all(&bytes).expect("an open connection");
        xid
    }

    /// Reads the next message.
    pub(crate) fn read(&mut self) -> (u32, Message) {
        let mut bytes = vec![0; 8];
        self.stream.read_exact(&mut bytes).expect("a message");
        let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        bytes.resize(length, 0);
        self.stream.read_exact(&mut bytes[8..]).expect("a message");
        let (header, message) = Message::read(&bytes).expect("a right message");
        (header.xid, message)
    }

    /// Sends a message and a barrier. Returns the messages up to the reply of the barrier.
    pub(crate) fn ask(&mut self, message: &Message) -> Vec<Message> {
        self.send(message);
        self.barrier()
    }

    /// Sends a barrier. Returns the messages up to its reply.
    pub(crate) fn barrier(&mut self) -> Vec<Message> {
        let barrier = self.send(&Message::BarrierRequest(Nothing));
        let mut messages = Vec::new();
        loop {
            match self.read() {
                (xid, Message::BarrierReply(_)) if xid == barrier => return messages,
                (_, message) => messages.push(message),
            }
        }
    }

    /// Sends messages as a bundle.
    ///
    /// # Errors
    /// The code of the first message that is refused.
    pub(crate) fn bundle(&mut self, number: u32, messages: &[Message]) -> Result<(), Code> {
        let control = |step| {
            Message::BundleControl(BundleControl {
                bundle: number,
                step,
                flags: flag::ATOMIC | flag::ORDERED,
                properties: Vec::new(),
            })
        };
        self.send(&control(BundleStep::OpenRequest));
        for message in messages {
            let xid = self.next_xid;
            self.send(&Message::BundleAdd(BundleAdd {
                bundle: number,
                flags: flag::ATOMIC | flag::ORDERED,
                message: message.to_bytes(xid),
            }));
        }
        let replies = self.ask(&control(BundleStep::CommitRequest));
        let errors = replies.iter().filter_map(|reply| match reply {
            Message::Error(error) => Some(Code {
                kind: error.kind,
                code: error.code,
            }),
            _ => None,
        });
        errors.map(Err).next().unwrap_or(Ok(()))
    }
}
