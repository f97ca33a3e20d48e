//! Programs in C use the library: plain, with the address sanitizer, and in valgrind. A step
//! for which the compiler, the sanitizer or valgrind is missing prints that it is skipped.

#![allow(clippy::print_stderr)] // skipped steps

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the library that cargo built for this test.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

/// The libraries that static libraries of Rust need on Linux.
const SYSTEM_LIBRARIES: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

/// Compiles a program of C or C++ with the library linked in. `None` if the compiler is missing.
fn compile(compiler: &str, source: &Path, options: &[&str], suffix: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = source.file_stem().unwrap().to_str().unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{suffix}"));
    let run = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-g", "-I"])
        .arg(folder.join("include"))
        .args(options)
        .arg(folder.join(source))
        .arg(library_folder().join("libclassyard_c.a"))
        .args(SYSTEM_LIBRARIES)
        .arg("-o")
        .arg(&program)
        .output();
    let Ok(output) = run else {
        eprintln!("SKIPPED: {name}: {compiler} is not installed");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{compiler} {}:\n{errors}",
        source.display()
    );
    Some(program)
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{errors}",
        output.status
    );
}

const PROGRAMS: [&str; 4] = ["lookups", "errors", "threads", "arrow"];

fn source(name: &str) -> PathBuf {
    Path::new("tests/c").join(name).with_extension("c")
}

#[test]
fn programs_in_c_do_what_the_header_says() {
    for name in PROGRAMS {
        if let Some(program) = compile("cc", &source(name), &["-std=c11"], "plain") {
            run(&mut Command::new(program));
        }
    }
}

#[test]
fn objects_in_cpp_free_themselves() {
    let source = Path::new("tests/c/objects.cpp");
    let options = ["-std=c++17", "-fsanitize=address,undefined"];
    let options = if sanitizers_work() {
        &options[..]
    } else {
        &options[..1]
    };
    if let Some(program) = compile("c++", source, options, "objects") {
        run(&mut Command::new(program));
    }
}

#[test]
fn the_example_in_go_prints_the_rules_of_its_headers() {
    let version = Command::new("go").args(["env", "GOVERSION"]).output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let minor = version.ok().and_then(|version| {
        let minor = version
            .strip_prefix("go1.")?
            .split('.')
            .next()?
            .trim()
            .parse()
            .ok();
        minor.filter(|&minor: &u32| minor >= 21)
    });
    if minor.is_none() {
        eprintln!("SKIPPED: the example in Go: Go 1.21 or later is not installed");
        return;
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/go");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-example");
    run(Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(example)
        .env("CGO_LDFLAGS", format!("-L{}", library_folder().display())));
    let output = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[0 1]\n");
}

/// Builds the example with rte_acl. `None` if the C compiler or DPDK is missing.
fn build_rte_acl_example() -> Option<PathBuf> {
    for (tool, argument) in [("cc", "--version"), ("pkg-config", "--version")] {
        if Command::new(tool).arg(argument).output().is_err() {
            eprintln!("SKIPPED: the example with rte_acl: {tool} is not installed");
            return None;
        }
    }
    let mut dpdk = Command::new("pkg-config");
    if !dpdk
        .args(["--exists", "libdpdk"])
        .status()
        .unwrap()
        .success()
    {
        eprintln!("SKIPPED: the example with rte_acl: DPDK is not installed");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/rte_acl/build");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rte_acl-forward");
    let library = library_folder().join("libclassyard_c.a");
    run(Command::new(script).arg(library).arg(&program));
    Some(program)
}

/// The example compares all decisions, and fails at a difference.
#[test]
fn the_example_with_rte_acl_finds_the_same_rules_in_both_libraries() {
    let Some(program) = build_rte_acl_example() else {
        return;
    };
    run(Command::new(&program).args(["200", "2000", "20"]));

    let rules = program.with_extension("classbench");
    let lines = "@10.1.0.0/16\t10.2.3.4/32\t0 : 65535\t443 : 443\t0x06/0xFF\t0x0000/0x0000\n\
                 @0.0.0.0/0\t10.2.0.0/16\t0 : 65535\t0 : 1023\t0x00/0x00\t0x0000/0x0000\n";
    std::fs::write(&rules, lines).unwrap();
    let output = Command::new(&program)
        .arg(&rules)
        .args(["500", "5"])
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(text.contains("2 rules, 500 packets"), "{text}");
    assert!(text.contains("\n5 changes gave "), "{text}");

    std::fs::write(&rules, format!("{lines}permit any\n")).unwrap();
    let output = Command::new(&program).arg(&rules).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        error.contains("classbench:3: expected \"@SRC/LENGTH"),
        "{error}"
    );
}

/// True if the C compiler can link with the sanitizers.
fn sanitizers_work() -> bool {
    let probe = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("probe-{:?}.c", std::thread::current().id()));
    std::fs::write(&probe, "int main(void) { return 0; }\n").unwrap();
    let program = probe.with_extension("out");
    let mut compiler = Command::new("cc");
    let linked = compiler
        .args(SANITIZERS)
        .arg(&probe)
        .arg("-o")
        .arg(program)
        .output();
    linked.is_ok_and(|output| output.status.success())
}

const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The sanitizer sees all memory that the library allocates, and every access of C to it.
#[test]
fn the_address_sanitizer_finds_nothing() {
    if !sanitizers_work() {
        eprintln!("SKIPPED: address sanitizer: cc cannot link with it");
        return;
    }
    for name in ["lookups", "errors", "arrow"] {
        let options = [&["-std=c11"][..], &SANITIZERS].concat();
        if let Some(program) = compile("cc", &source(name), &options, "sanitized") {
            run(Command::new(program).env("ASAN_OPTIONS", "detect_leaks=1"));
        }
    }
}

#[test]
fn valgrind_finds_nothing() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("SKIPPED: valgrind is not installed");
        return;
    }
    if let Some(program) = compile("cc", &source("errors"), &["-std=c11"], "valgrind") {
        let checks = ["--quiet", "--error-exitcode=9", "--leak-check=full"];
        run(Command::new("valgrind").args(checks).arg(program));
    }
}
