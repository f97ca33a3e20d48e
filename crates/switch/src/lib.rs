//! A virtual OpenFlow switch: ports, workers, and an agent that controllers drive.
//!
//! ```
//! use classyard_datapath::packet::Offload;
//! use classyard_switch::Switch;
//! use classyard_switch::config::SwitchSettings;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("classyard-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let flows = folder.join("flows");
//! # std::fs::write(&flows, "in_port=1 actions=output:2")?;
//! let settings = SwitchSettings {
//!     run_dir: folder.clone(),
//!     flows: Some(flows),
//!     ..SwitchSettings::default()
//! };
//! let mut switch = Switch::new(settings);
//! let (first, second) = (switch.memory_port(1, "first"), switch.memory_port(2, "second"));
//! let stop = switch.stop_handle();
//! let running = std::thread::spawn(move || switch.run(|ready| assert_eq!(ready.ports, 2)));
//! // If the switch has not started yet, the port keeps the frame.
//! assert!(first.send(0, &[0; 60], Offload::NONE));
//! let (frame, _) = loop {
//!     if let Some(frame) = second.receive() {
//!         break frame;
//!     }
//!     std::thread::yield_now();
//! };
//! assert_eq!(frame, [0; 60]);
//! stop.stop();
//! running.join().expect("no panic")?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `switch` | a switch that is made from settings, and runs |
//! | [`config`] | the settings of a switch, and the TOML files that have them |
//! | [`control`] | the messages of the control socket, and a client |
//! | `worker` | threads that receive, process and send packets |
//! | `agent` | the thread that has the pipeline, the ports and the sessions of controllers |
//! | `pcapng` | captures in the format pcapng |
//! | [`tls`] | TLS for connections to controllers |
//! | `clock` | the time since the start |
//! | `error` | reasons why a switch cannot start |
//! | `heap` | the allocator's option for long lists |
//! | `stop` | stopping a running switch |

mod agent;
mod clock;
pub mod config;
pub mod control;
mod error;
mod heap;
mod pcapng;
mod stop;
mod switch;
pub mod tls;
mod worker;

pub use agent::Ready;
pub use error::SwitchError;
pub use stop::StopHandle;
pub use switch::Switch;
