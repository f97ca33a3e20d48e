//! `calibrate` writes a machine file, and commands that estimate read it.

use std::fs;

use crate::support::{Folder, program, run, words};

/// Returns a quick calibration of this processor without engines: its path and its
/// text.
fn calibrated(folder: &Folder) -> (String, String) {
    let file = folder.path("machine.toml");
    run(&format!("calibrate --quick --no-engines -o {file}"))
        .exits(0)
        .prints("instruction")
        .complains("written to");
    let text = fs::read_to_string(&file).unwrap();
    (file, text)
}

#[test]
fn what_is_measured_is_what_is_estimated_with() {
    let folder = Folder::new();
    let file = folder.path("machine.toml");
    let report = run(&format!("calibrate --quick -o {file} --format json"));
    let report = report.exits(0).json();
    assert_eq!(report["file"], file.as_str());
    for name in ["instruction_ns", "misprediction_ns"] {
        assert!(report[name].as_f64().unwrap() > 0.0);
    }
    let points = report["dependent"].as_array().unwrap();
    assert!(points.len() > 3 && points.len() == report["overlapped"].as_array().unwrap().len());
    let factors = report["factors"].as_array().unwrap();
    for spec in classyard::EngineSpec::all().filter(|spec| spec.inner().is_none()) {
        let name = spec.engine().name;
        let of_engine = factors.iter().filter(|row| row["engine"] == name);
        let count = if spec.is_dynamic() { 4 } else { 3 };
        assert_eq!(of_engine.count(), count, "{name}");
    }
    let advice = run(&format!("advise --machine {file} --format json"));
    let advice = advice.exits(0).silent().json();
    assert_eq!(advice["machine"]["source"], file.as_str());
    assert_eq!(advice["machine"]["processor"], report["processor"]);
    let candidates = advice["parts"][0]["candidates"].as_array().unwrap();
    assert!(candidates.iter().any(|row| row["factor_ns"] != 0.0));
    for command in [
        "inspect --no-engines",
        "bench --quick --profiles acl1 --sizes 100",
    ] {
        run(&format!("{command} --machine {file}")).exits(0);
    }
}

/// The default file is read if it exists, unless another file is named.
#[test]
fn the_default_place_is_read() {
    let folder = Folder::new();
    let (file, text) = calibrated(&folder);
    let place = folder.path("classyard");
    fs::create_dir(&place).unwrap();
    fs::rename(&file, format!("{place}/machine.toml")).unwrap();
    let configured = |arguments: &str| {
        let mut command = program();
        command.env("XDG_CONFIG_HOME", folder.path(""));
        let output = command.args(words(arguments)).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    let (found, said) = configured("advise --format json");
    assert!(
        found.contains("classyard/machine.toml") && said.is_empty(),
        "{found}{said}"
    );
    let (found, _) = configured("advise --machine default --format json");
    assert!(!found.contains("machine.toml"), "{found}");

    // A file of another processor is used only if requested.
    let line = text
        .lines()
        .find(|line| line.starts_with("processor"))
        .unwrap();
    let other = text.replace(line, "processor = \"Z80\"");
    fs::write(format!("{place}/machine.toml"), &other).unwrap();
    let (found, said) = configured("advise --format json");
    assert!(!found.contains("machine.toml"), "{found}");
    assert!(
        said.contains("another processor, Z80") && said.contains("calibrate"),
        "{said}"
    );
    let file = folder.file("z80.toml", &other);
    run(&format!("advise --machine {file} --format json"))
        .exits(0)
        .prints("\"processor\": \"Z80\"")
        .complains("another processor");
}

#[test]
fn broken_files_are_refused_with_their_place() {
    let folder = Folder::new();
    let (_, text) = calibrated(&folder);
    let line = text
        .lines()
        .position(|line| line.starts_with("misprediction_ns"));
    let line = line.unwrap() + 1;
    let start = text.find("misprediction_ns").unwrap();
    let end = start + text[start..].find('\n').unwrap();
    let broken = format!("{}misprediction_ns = -2.0{}", &text[..start], &text[end..]);
    let file = folder.file("broken.toml", &broken);
    for command in ["advise", "inspect --no-engines", "bench --quick"] {
        run(&format!("{command} --machine {file}"))
            .exits(2)
            .complains(&format!("broken.toml:{line}:20"))
            .complains("misprediction_ns is -2");
    }
    let file = folder.file("old.toml", text.replace("form = 1", "form = 0"));
    run(&format!("advise --machine {file}"))
        .exits(2)
        .complains("calibrate again");
    run("advise --machine nowhere.toml")
        .exits(2)
        .complains("nowhere.toml");
}
