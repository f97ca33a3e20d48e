//! A virtual OpenFlow switch: ports, workers, an agent that controllers drive.

#![forbid(unsafe_code)]
