//! The example of a configuration is read, and its flows are loaded.

use std::path::{Path, PathBuf};
use std::time::Duration;

use classyard_datapath::TableSettings;
use classyard_datapath::pipeline::{Pipeline, PipelineSettings};
use classyard_datapath::text;
use classyard_switch::config::{DeviceSettings, SwitchSettings};

fn example(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/switch");
    folder.join(name)
}

#[test]
fn the_example_is_read() {
    let settings = SwitchSettings::read(&example("br0.toml")).unwrap();
    assert_eq!(settings.name, "br0");
    assert_eq!(settings.datapath_id, Some(1));
    assert_eq!((settings.workers, settings.cpus), (2, vec![0, 1]));
    let numbers: Vec<u32> = settings.ports.iter().map(|port| port.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let types = settings.ports.iter().map(|port| port.device.type_name());
    let types: Vec<&str> = types.collect();
    assert_eq!(types, ["interface", "interface", "tap", "pcap", "memory"]);
    let DeviceSettings::Pcap { receive, .. } = &settings.ports[3].device else {
        panic!("{:?}", settings.ports[3]);
    };
    assert!(receive.as_ref().unwrap().exists());
    assert_eq!(settings.controllers.len(), 2);
    assert_eq!(settings.listeners.len(), 1);
}

#[test]
fn the_flows_of_the_example_are_loaded() {
    let settings = SwitchSettings::read(&example("br0.toml")).unwrap();
    let flows = settings.flows.unwrap();
    assert_eq!(flows, example("br0.flows"));
    let tables = TableSettings::new(settings.engine).unwrap();
    let mut pipeline = Pipeline::new(PipelineSettings::new(tables));
    let flows = std::fs::read_to_string(flows).unwrap();
    text::load(&flows, &mut pipeline, Duration::ZERO).unwrap();
    assert_eq!(pipeline.flows().iter().count(), 9);
    assert_eq!(pipeline.groups().iter().count(), 1);
    assert_eq!(pipeline.meters().iter().count(), 1);
}
