//! A switch and its controllers, for tests of the agent.

// Each test uses a part of it.
#![allow(dead_code)]

use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::pipeline::{Pipeline, PortState};
use classyard_datapath::{PortNo, TableSettings};
use classyard_openflow::agent::{
    Agent, PortCounts, PortDetails, SessionId, Surroundings, SwitchIdentity,
};
use classyard_openflow::connection::{Connection, Received};
use classyard_openflow::switch::Hello;
use classyard_openflow::{Code, Message};

/// A switch without workers, and the time.
pub(crate) struct Switch {
    pub(crate) agent: Agent,
    pub(crate) pipeline: Pipeline,
    pub(crate) now: Duration,
}

/// A controller of the switch.
pub(crate) struct Controller {
    pub(crate) session: SessionId,
    pub(crate) connection: Connection,
    pub(crate) next_xid: u32,
}

impl Switch {
    pub(crate) fn new() -> Switch {
        let settings = TableSettings::new(EngineSpec::parse("tss").expect("an engine"));
        let identity = SwitchIdentity {
            datapath_id: 0x0102,
            manufacturer: "classyard".to_owned(),
            hardware: String::new(),
            software: "0.1".to_owned(),
            serial_number: String::new(),
            name: "br0".to_owned(),
        };
        let mut switch = Switch {
            agent: Agent::new(identity),
            pipeline: Pipeline::new(settings.expect("settings")),
            now: Duration::from_secs(100),
        };
        for port in 1..=2 {
            let details = PortDetails {
                address: [2, 0, 0, 0, 0, port],
                ..PortDetails::default()
            };
            let new = Some((PortState::default(), details));
            switch.with(|agent, around| {
                agent
                    .set_port(PortNo(port.into()), new, around)
                    .expect("a right port");
            });
        }
        switch
    }

    pub(crate) fn with<T>(
        &mut self,
        act: impl FnOnce(&mut Agent, &mut Surroundings<'_>) -> T,
    ) -> T {
        let mut around = Surroundings {
            pipeline: &mut self.pipeline,
            port_counts: &|port| PortCounts {
                received: Some((u64::from(port.0), 60)),
                ..PortCounts::default()
            },
            now: self.now,
        };
        act(&mut self.agent, &mut around)
    }

    /// Returns a controller that has said hello.
    pub(crate) fn controller(&mut self) -> Controller {
        let mut controller = Controller {
            session: self.agent.connect(self.now),
            connection: Connection::new(),
            next_xid: 1,
        };
        controller.send(self, &Message::Hello(Hello::only_1_3()));
        assert!(matches!(
            controller.read(self)[..],
            [(_, Message::Hello(_))]
        ));
        controller
    }
}

impl Controller {
    /// Sends a message. Returns its transaction number.
    pub(crate) fn send(&mut self, switch: &mut Switch, message: &Message) -> u32 {
        let xid = self.next_xid;
        self.next_xid += 1;
        let bytes = message.to_bytes(xid);
        let session = self.session;
        switch.with(|agent, around| agent.receive(session, &bytes, around));
        xid
    }

    /// Reads all that the switch has sent.
    pub(crate) fn read(&mut self, switch: &mut Switch) -> Vec<(u32, Message)> {
        let mut messages = Vec::new();
        loop {
            let bytes = switch.agent.unsent(self.session).to_vec();
            if bytes.is_empty() {
                return messages;
            }
            messages.extend(self.read_bytes(switch, &bytes));
        }
    }

    /// Reads the first of the bytes that the switch has not sent, which are `bytes`.
    pub(crate) fn read_bytes(&mut self, switch: &mut Switch, bytes: &[u8]) -> Vec<(u32, Message)> {
        let session = self.session;
        switch.agent.sent(session, bytes.len());
        switch.with(|agent, around| agent.proceed(session, around));
        self.connection.receive(bytes);
        let mut messages = Vec::new();
        while let Some(received) = self.connection.next() {
            match received {
                Received::Message(header, message) => messages.push((header.xid, message)),
                other => panic!("{other:?}"),
            }
        }
        messages
    }

    /// Sends a message and returns its answers.
    pub(crate) fn ask(&mut self, switch: &mut Switch, message: &Message) -> Vec<Message> {
        let xid = self.send(switch, message);
        let answers = self.read(switch).into_iter();
        answers
            .map(|(answered, message)| {
                assert_eq!(answered, xid, "{message:?}");
                message
            })
            .collect()
    }

    /// Sends a message and returns the code of the error that answers it.
    pub(crate) fn refused(&mut self, switch: &mut Switch, message: &Message) -> Code {
        match &self.ask(switch, message)[..] {
            [Message::Error(error)] => Code {
                kind: error.kind,
                code: error.code,
            },
            other => panic!("{other:?}"),
        }
    }
}
