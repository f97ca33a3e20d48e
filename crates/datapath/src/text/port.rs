//! Converts lines of ports to states of ports.

use classyard_text::Fault;
use classyard_text::line::quoted;
use classyard_text::ofctl::{PortLine, PortNames, port_number};

use crate::action::PortNo;
use crate::pipeline::{PortName, PortSpeed, PortState, Ports};

/// The maximum number of ports that a fault lists.
const PORTS_SHOWN: usize = 8;

/// Returns the port that a line of a pipeline describes, and its state. Without `link=`, it
/// has a link.
pub(super) fn described<'t>(line: &PortLine<'t>) -> Result<(PortNo, PortState), Fault<'t>> {
    let port = PortNo(port_number(line.port)?);
    let mut state = PortState::default();
    if let Some(name) = line.name {
        state.name = PortName::new(name);
        if state.name.is_none() {
            let description = format!("{} is not a port name", quoted(name));
            return Err(Fault::new(name, description, "another name"));
        }
    }
    change(line, &mut state);
    Ok((port, state))
}

/// Returns the port that a line of a script names.
pub(super) fn named<'t>(
    line: &PortLine<'t>,
    names: &mut PortNames<'_>,
) -> Result<PortNo, Fault<'t>> {
    if let Some(name) = line.name {
        return Err(Fault::new(
            name,
            "a name in a script",
            "`port=` with a number or a name, and the values to change; names are set in the \
             pipeline",
        ));
    }
    let port = PortNo(names.port(line.port, "port")?);
    match port.is_physical() || port == PortNo::LOCAL {
        true => Ok(port),
        false => {
            let description = format!("{} is not a port", quoted(line.port));
            Err(Fault::new(
                line.port,
                description,
                "a number, a name, or `LOCAL`",
            ))
        }
    }
}

/// Returns the state of a port after the change of a line.
pub(super) fn changed<'t>(
    line: &PortLine<'t>,
    port: PortNo,
    ports: &Ports,
) -> Result<PortState, Fault<'t>> {
    match ports.get(port) {
        Some(mut state) => {
            change(line, &mut state);
            Ok(state)
        }
        None => {
            let shown = ports.iter().take(PORTS_SHOWN);
            let shown: Vec<String> = shown.map(|(port, _)| port.to_string()).collect();
            let ellipsis = match ports.iter().nth(PORTS_SHOWN) {
                Some(_) => ", …",
                None => "",
            };
            let description = format!("there is no port {port}");
            let expected = format!("one of the ports {}{ellipsis}", shown.join(", "));
            Err(Fault::new(line.port, description, expected))
        }
    }
}

/// Sets the values that a line gives, except the name.
fn change(line: &PortLine<'_>, state: &mut PortState) {
    state.is_up = line.is_up.unwrap_or(state.is_up);
    state.no_receive = line.receives.map_or(state.no_receive, |receives| !receives);
    state.no_forward = line.forwards.map_or(state.no_forward, |forwards| !forwards);
    state.no_flood = line.floods.map_or(state.no_flood, |floods| !floods);
    state.speed = line.speed.map(PortSpeed).or(state.speed);
}
