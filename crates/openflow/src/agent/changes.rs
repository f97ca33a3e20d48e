//! Changes of the pipeline, and packets of controllers.

use classyard_datapath::PortNo;
use classyard_datapath::pipeline::Message as PipelineMessage;

use super::bundles::Member;
use super::monitor::Cause;
use super::shared::Job;
use super::turn::Turn;
use crate::bundle::BundleControl;
use crate::fault::{Code, Fault};
use crate::message::Message;
use crate::packet::PacketOut;

/// The fewest bytes of a frame: an Ethernet header.
const LEAST_FRAME_BYTES: usize = 14;

impl Turn<'_, '_> {
    /// Submits one change. A barrier, or the next publication, makes it visible.
    pub(super) fn change(&mut self, xid: u32, message: PipelineMessage) -> Result<(), Fault> {
        let cause = Cause::of(xid, &message);
        let time = self.around.now;
        let changes = self.around.pipeline.submit(&[message], time);
        let changes = changes.map_err(|error| Fault::from(error.error().clone()))?;
        self.shared.note(&changes, time);
        self.report(cause, &changes);
        Ok(())
    }

    /// Carries out the messages of a bundle, all or none, and makes them visible.
    pub(super) fn commit(
        &mut self,
        xid: u32,
        reply: BundleControl,
        members: Vec<Member>,
    ) -> Result<(), Fault> {
        let mut messages = Vec::with_capacity(members.len());
        let mut firsts = Vec::with_capacity(members.len());
        for member in members {
            let message = match member.message {
                Message::FlowMod(change) => PipelineMessage::Flow(change),
                Message::GroupMod(change) => PipelineMessage::Group(change),
                Message::MeterMod(change) => PipelineMessage::Meter(change),
                other => {
                    let message = format!("{} in a bundle", other.name());
                    return Err(Fault::new(Code::BUNDLE_MESSAGE_UNSUPPORTED, message));
                }
            };
            messages.push(message);
            firsts.push((member.xid, member.first));
        }
        match self
            .around
            .pipeline
            .apply_bundle(&messages, self.around.now)
        {
            Ok((changes, counts)) => {
                self.shared.note(&changes, self.around.now);
                let mut start = 0;
                for ((message, (member_xid, _)), end) in messages.iter().zip(&firsts).zip(counts) {
                    self.report(Cause::of(*member_xid, message), &changes[start..end]);
                    start = end;
                }
                self.session.send(xid, &Message::BundleControl(reply));
                Ok(())
            }
            Err(error) => {
                let (member_xid, first) = &firsts[error.index()];
                let fault = Fault::from(error.error().clone());
                self.session.refuse(*member_xid, &fault, first);
                let message = format!("bundle {}: {error}; nothing is changed", reply.bundle);
                Err(Fault::new(Code::BUNDLE_MESSAGE_FAILED, message))
            }
        }
    }

    /// Makes a job of a packet, if its actions can be carried out.
    pub(super) fn packet_out(&mut self, packet: PacketOut) -> Result<(), Fault> {
        // Open vSwitch takes this number for a packet of the controller, and programs send it.
        let in_port = match packet.in_port {
            PortNo::ANY => PortNo::CONTROLLER,
            port => port,
        };
        if !in_port.is_physical() && !matches!(in_port, PortNo::CONTROLLER | PortNo::LOCAL) {
            let message = format!("a packet with the input port {in_port}");
            return Err(Fault::new(Code::BAD_PORT, message));
        }
        if packet.data.len() < LEAST_FRAME_BYTES {
            let message = format!(
                "a frame of {} bytes; {LEAST_FRAME_BYTES} is the least",
                packet.data.len()
            );
            return Err(Fault::new(Code::BAD_PACKET, message));
        }
        self.around.pipeline.check_packet_out(&packet.actions)?;
        let number = self.shared.next_job;
        self.shared.next_job += 1;
        self.session.jobs.insert(number);
        self.shared.jobs.push(Job {
            number,
            in_port,
            actions: packet.actions,
            frame: packet.data,
        });
        Ok(())
    }
}
