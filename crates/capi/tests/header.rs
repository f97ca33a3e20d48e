//! `include/classyard.h` is equal to the header that cbindgen makes of the sources.

use std::path::Path;

/// Set to write the header instead of comparing it.
const WRITE: &str = "CLASSYARD_WRITE_HEADER";

#[test]
fn the_header_is_generated_from_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for module in ["status", "types", "policy", "table", "reader", "arrow"] {
        builder = builder.with_src(folder.join("src").join(module).with_extension("rs"));
    }
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    let header = String::from_utf8(header).unwrap();

    let path = folder.join("include/classyard.h");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let same = committed.lines().zip(header.lines());
    let line = same.take_while(|(old, new)| old == new).count() + 1;
    assert!(
        committed == header,
        "{}:{line} differs from the sources: run this test with {WRITE}=1",
        path.display()
    );
}
