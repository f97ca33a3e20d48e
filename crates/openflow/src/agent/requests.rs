//! The messages of a controller, one by one: what each of them does.

use classyard_datapath::PortNo;
use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline;

use super::bundles::Outcome;
use super::ports::PortChange;
use super::session::Waiting;
use super::shared::{KnownPort, PortDetails};
use super::turn::Turn;
use crate::fault::{Code, Fault};
use crate::message::{Header, Message};
use crate::port::{PortMod, QueueConfig};
use crate::switch::{Role, RoleMessage, SwitchConfig, SwitchFeatures};

/// Statistics of flows, tables, ports, groups and queues (`ofp_capabilities`).
const SWITCH_CAPABILITIES: u32 = 0x4f;

/// Flags of a port's configuration that a controller may change.
const PORT_FLAGS: u32 = {
    use crate::port::config::{DOWN, NO_FORWARD, NO_PACKET_IN, NO_RECEIVE};
    DOWN | NO_RECEIVE | NO_FORWARD | NO_PACKET_IN
};

impl Turn<'_, '_> {
    /// Carries out a message.
    pub(super) fn handle(&mut self, header: Header, message: Message) -> Result<(), Fault> {
        let xid = header.xid;
        if self.session.role == Role::Secondary && changes(&message) {
            let message = format!("{} of a controller that may only read", message.name());
            return Err(Fault::new(Code::IS_SLAVE, message));
        }
        match message {
            Message::EchoRequest(data) => self.session.send(xid, &Message::EchoReply(data)),
            // Anything that arrives says that the controller is there.
            Message::Hello(_) | Message::EchoReply(_) | Message::Error(_) => {}
            Message::FeaturesRequest(_) => {
                let features = Message::FeaturesReply(self.features());
                self.session.send(xid, &features);
            }
            Message::GetConfigRequest(_) => {
                let config = Message::GetConfigReply(self.shared.config.clone());
                self.session.send(xid, &config);
            }
            Message::SetConfig(config) => self.set_config(config)?,
            Message::FlowMod(change) => self.change(xid, pipeline::Message::Flow(change))?,
            Message::GroupMod(change) => self.change(xid, pipeline::Message::Group(change))?,
            Message::MeterMod(change) => self.change(xid, pipeline::Message::Meter(change))?,
            Message::PortMod(change) => self.change_port(xid, &change)?,
            Message::TableMod(change) => check_table_mod(change.table, change.config)?,
            Message::PacketOut(packet) => self.packet_out(packet)?,
            Message::BarrierRequest(_) => {
                self.around.pipeline.publish();
                let jobs = self.session.jobs.clone();
                self.session.waiting = Some(Waiting::Barrier(jobs, xid));
            }
            Message::MultipartRequest(request) => self.answer(xid, request)?,
            Message::RoleRequest(request) => self.change_role(xid, &request)?,
            Message::GetAsyncRequest(_) => {
                let masks = Message::GetAsyncReply(self.session.masks.clone());
                self.session.send(xid, &masks);
            }
            Message::SetAsync(masks) => self.session.masks = masks,
            Message::QueueConfigRequest(request) => self.queues(xid, request.port)?,
            Message::BundleControl(request) => match self.session.bundles.control(&request)? {
                Outcome::Reply(reply) => self.session.send(xid, &Message::BundleControl(reply)),
                Outcome::Commit(reply, members) => self.commit(xid, reply, members)?,
            },
            Message::BundleAdd(add) => self.session.bundles.add(xid, &add)?,
            Message::MonitorCancel(request) => self.session.monitors.cancel(request.monitor)?,
            Message::Experimenter(unknown) => {
                let message = format!("the unknown experimenter {:#010x}", unknown.experimenter);
                return Err(Fault::new(Code::BAD_EXPERIMENTER, message));
            }
            Message::FeaturesReply(_)
            | Message::GetConfigReply(_)
            | Message::PacketIn(_)
            | Message::FlowRemoved(_)
            | Message::PortStatus(_)
            | Message::MultipartReply(_)
            | Message::BarrierReply(_)
            | Message::QueueConfigReply(_)
            | Message::RoleReply(_)
            | Message::GetAsyncReply(_)
            | Message::MonitorPaused(_)
            | Message::MonitorResumed(_) => {
                let message = format!("{}, which only a switch sends", message.name());
                return Err(Fault::new(Code::BAD_TYPE, message));
            }
        }
        Ok(())
    }

    fn features(&self) -> SwitchFeatures {
        SwitchFeatures {
            datapath_id: self.shared.identity.datapath_id,
            buffers: 0,
            tables: TableId::LAST.0 + 1,
            auxiliary_id: 0,
            capabilities: SWITCH_CAPABILITIES,
            reserved: 0,
        }
    }

    /// Sets the configuration. Fragments are always processed as any packet.
    fn set_config(&mut self, config: SwitchConfig) -> Result<(), Fault> {
        if config.flags != 0 {
            let message = format!(
                "flags {:#06x}; fragments are processed as any packet (0)",
                config.flags
            );
            return Err(Fault::new(Code::BAD_SWITCH_FLAGS, message));
        }
        self.shared.config = config;
        Ok(())
    }

    /// Changes the role of the controller. If it becomes primary, the primary one becomes
    /// secondary (OpenFlow 1.3.5 §6.3.6).
    fn change_role(&mut self, xid: u32, request: &RoleMessage) -> Result<(), Fault> {
        if matches!(request.role, Role::Primary | Role::Secondary) {
            let latest = self.shared.generation;
            // The distance of two numbers that may have begun again at 0.
            let is_old =
                latest.is_some_and(|latest| request.generation.wrapping_sub(latest) > u64::MAX / 2);
            if is_old {
                let message = format!(
                    "generation {}; a later one is {}",
                    request.generation,
                    latest.unwrap_or_default()
                );
                return Err(Fault::new(Code::STALE_ROLE, message));
            }
            self.shared.generation = Some(request.generation);
        }
        if request.role == Role::Primary {
            let sessions = self.others.values_mut();
            for other in sessions.filter(|other| other.role == Role::Primary) {
                other.role = Role::Secondary;
            }
        }
        if request.role != Role::NoChange {
            self.session.role = request.role;
        }
        let reply = RoleMessage {
            role: self.session.role,
            generation: self.shared.generation.unwrap_or(u64::MAX),
        };
        self.session.send(xid, &Message::RoleReply(reply));
        Ok(())
    }

    /// Answers with the queues of a port, which has none.
    fn queues(&mut self, xid: u32, port: PortNo) -> Result<(), Fault> {
        let is_known = self.around.pipeline.ports().get(port).is_some();
        if !is_known && port != PortNo::ANY {
            return Err(Fault::new(
                Code::QUEUE_BAD_PORT,
                format!("there is no port {port}"),
            ));
        }
        let queues = QueueConfig {
            port,
            queues: Vec::new(),
        };
        self.session.send(xid, &Message::QueueConfigReply(queues));
        Ok(())
    }

    /// Changes the configuration of a port.
    fn change_port(&mut self, xid: u32, change: &PortMod) -> Result<(), Fault> {
        use crate::port::config;

        let port = change.number;
        let Some(state) = self.around.pipeline.ports().get(port) else {
            let message = format!("there is no port {port}");
            return Err(Fault::new(Code::PORT_MOD_BAD_PORT, message));
        };
        let known = self.shared.ports.get(&port).copied().unwrap_or_default();
        let details = known.details;
        if change.address != details.address {
            let message = format!("port {port} has another hardware address");
            return Err(Fault::new(Code::BAD_HARDWARE_ADDRESS, message));
        }
        if change.mask & !PORT_FLAGS != 0 {
            let message = format!(
                "flags {:#x} of port {port}; {PORT_FLAGS:#x} can be changed",
                change.mask
            );
            return Err(Fault::new(Code::BAD_PORT_CONFIG, message));
        }
        if change.advertise != 0 {
            let message = format!("port {port} cannot advertise other features");
            return Err(Fault::new(Code::BAD_PORT_ADVERTISE, message));
        }
        let chosen = |flag, present| match change.mask & flag {
            0 => present,
            _ => change.config & flag != 0,
        };
        let details = PortDetails {
            is_down: chosen(config::DOWN, details.is_down),
            no_packet_in: chosen(config::NO_PACKET_IN, details.no_packet_in),
            ..details
        };
        let no_receive = chosen(config::NO_RECEIVE, known.no_receive);
        let state = pipeline::PortState {
            is_up: known.has_link && !details.is_down,
            no_receive: no_receive || details.is_down,
            no_forward: chosen(config::NO_FORWARD, state.no_forward),
            ..state
        };
        let known = KnownPort {
            details,
            no_receive,
            ..known
        };
        self.shared.ports.insert(port, known);
        self.change(xid, pipeline::Message::Port(port, Some(state)))?;
        self.announce_port(port, PortChange::Modified);
        Ok(())
    }
}

/// True for messages that a secondary controller may not send.
fn changes(message: &Message) -> bool {
    use crate::multipart::Request;

    match message {
        Message::FlowMod(_)
        | Message::GroupMod(_)
        | Message::MeterMod(_)
        | Message::PortMod(_)
        | Message::TableMod(_)
        | Message::PacketOut(_)
        | Message::BundleControl(_)
        | Message::BundleAdd(_) => true,
        Message::MultipartRequest(request) => match &request.body {
            Request::TableFeatures(features) => !features.0.is_empty(),
            _ => false,
        },
        _ => false,
    }
}

/// Checks a message that configures a table. OpenFlow 1.3 has nothing to configure.
fn check_table_mod(table: TableId, config: u32) -> Result<(), Fault> {
    if !table.is_table() && table != TableId::ALL {
        let message = format!("there is no table {table}");
        return Err(Fault::new(Code { kind: 8, code: 0 }, message));
    }
    match config {
        // The flags of OpenFlow 1.1 are accepted without effect, as in Open vSwitch.
        0..=3 => Ok(()),
        flags => {
            let message = format!("flags {flags:#x} of table {table}; OpenFlow 1.3 has none");
            Err(Fault::new(Code { kind: 8, code: 1 }, message))
        }
    }
}
