//! OpenFlow: single messages, and whole sessions of a controller with the agent of a switch.

use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::pipeline::{Pipeline, PortState};
use classyard_datapath::{PortNo, TableSettings};
use classyard_openflow::agent::{
    Agent, MAX_UNSENT_BYTES, PortCounts, PortDetails, SessionId, Surroundings, SwitchIdentity,
};
use classyard_openflow::connection::{Connection, Received};
use classyard_openflow::switch::Hello;
use classyard_openflow::{Header, Message};

/// The most bytes that the largest answer adds beyond the limit: the features of all tables.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Reads bytes as a message, and as the body of a message. A message that was read is the same
/// after writing and reading it again.
pub(crate) fn messages(data: &[u8]) {
    reads_back(data);
    let Some((&kind, body)) = data.split_first() else {
        return;
    };
    let body = &body[..body.len().min(usize::from(u16::MAX) - Header::BYTES)];
    let length = u16::try_from(Header::BYTES + body.len()).expect("a short body");
    let mut message = vec![4, kind % 32];
    message.extend(length.to_be_bytes());
    message.extend([0, 0, 0, 9]);
    message.extend_from_slice(body);
    reads_back(&message);
}

fn reads_back(bytes: &[u8]) {
    let Ok((header, message)) = Message::read(bytes) else {
        return;
    };
    let written = message.to_bytes(header.xid);
    let (_, again) = Message::read(&written).unwrap_or_else(|fault| panic!("{fault}: {message:?}"));
    assert_eq!(again, message);
}

/// Plays a controller that says hello and then sends any bytes, in pieces. All that the agent
/// sends are whole messages, and its memory is bounded.
pub(crate) fn sessions(data: &[u8]) {
    let settings = TableSettings::new(EngineSpec::parse("tss").expect("an engine"));
    let mut pipeline = Pipeline::new(settings.expect("settings"));
    let mut agent = Agent::new(SwitchIdentity {
        datapath_id: 1,
        manufacturer: String::new(),
        hardware: String::new(),
        software: String::new(),
        serial_number: String::new(),
        name: String::new(),
    });
    let mut around = Surroundings {
        pipeline: &mut pipeline,
        port_counts: &|_| PortCounts::default(),
        now: Duration::ZERO,
    };
    let port = Some((PortState::default(), PortDetails::default()));
    let added = agent.set_port(PortNo(1), port, &mut around);
    added.expect("a right port");
    let session = agent.connect(Duration::ZERO);
    let mut answers = Connection::new();
    agent.receive(
        session,
        &Message::Hello(Hello::only_1_3()).to_bytes(0),
        &mut around,
    );
    for piece in data.chunks(100) {
        agent.receive(session, piece, &mut around);
        finish_jobs(&mut agent, &mut around);
        agent.tick(&mut around, &|_| Some(Duration::from_secs(1)));
        around.now += Duration::from_millis(700);
        assert!(agent.unsent(session).len() <= MAX_UNSENT_BYTES + MAX_ANSWER_BYTES);
        read_answers(&mut agent, session, &mut answers, &mut around);
    }
}

fn finish_jobs(agent: &mut Agent, around: &mut Surroundings<'_>) {
    loop {
        let jobs = agent.take_jobs();
        if jobs.is_empty() {
            return;
        }
        for job in jobs {
            let session = agent.job_done(job.number).expect("its session");
            agent.proceed(session, around);
        }
    }
}

fn read_answers(
    agent: &mut Agent,
    session: SessionId,
    answers: &mut Connection,
    around: &mut Surroundings<'_>,
) {
    while !agent.unsent(session).is_empty() {
        let bytes = agent.unsent(session).to_vec();
        agent.sent(session, bytes.len());
        agent.proceed(session, around);
        answers.receive(&bytes);
        while let Some(received) = answers.next() {
            assert!(matches!(received, Received::Message(..)), "{received:?}");
        }
    }
}
