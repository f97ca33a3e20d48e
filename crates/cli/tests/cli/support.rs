//! Runs the program, and makes files for it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// The exit code and the output of a run.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Fails the test unless the exit code is `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Run {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// Fails the test unless standard error contains `text`.
    #[track_caller]
    pub(crate) fn complains(self, text: &str) -> Run {
        assert!(
            self.stderr.contains(text),
            "no {text:?} in:\n{}",
            self.stderr
        );
        self
    }

    /// Fails the test unless standard output contains `text`.
    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Run {
        assert!(
            self.stdout.contains(text),
            "no {text:?} in:\n{}",
            self.stdout
        );
        self
    }

    /// Fails the test if standard error is not empty.
    #[track_caller]
    pub(crate) fn silent(self) -> Run {
        assert_eq!(self.stderr, "");
        self
    }

    /// Returns standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error} in:\n{}", self.stdout);
        })
    }

    /// Returns standard output as comma-separated values: the heading, then the rows.
    /// All rows must have the same number of cells.
    #[track_caller]
    pub(crate) fn csv(&self) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(self.stdout.as_bytes());
        let rows = reader.records().map(|row| {
            let row = row.unwrap_or_else(|error| panic!("{error} in:\n{}", self.stdout));
            row.iter().map(str::to_owned).collect()
        });
        rows.collect()
    }

    /// Returns the lines of standard output.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

/// Returns the program, ready for arguments.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_classyard"));
    command
        .env_remove("CLICOLOR_FORCE")
        .env_remove("NO_COLOR")
        // Estimates use the built-in machine, even if the user has calibrated another.
        .env(
            "XDG_CONFIG_HOME",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/no-config"),
        )
        .stdin(Stdio::null());
    command
}

/// Runs the program with arguments separated by spaces.
pub(crate) fn run(arguments: &str) -> Run {
    run_with(&words(arguments), &[])
}

/// Runs the program with bytes on standard input.
pub(crate) fn run_with(arguments: &[&str], input: &[u8]) -> Run {
    let mut command = program();
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A program that needs no more input may have closed it.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("writing does not panic");
    Run {
        code: output.status.code().expect("the program was not killed"),
        stdout: String::from_utf8(output.stdout).expect("output is text"),
        stderr: String::from_utf8(output.stderr).expect("messages are text"),
    }
}

/// Runs the program with standard output on a terminal of this size. Returns the
/// output without colours. The run has to succeed.
pub(crate) fn run_on_terminal(arguments: &str, columns: u16, rows: u16) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there is a terminal");
    grantpt(&terminal).expect("it is ours");
    unlockpt(&terminal).expect("it is ours");
    let name = ptsname(&terminal, Vec::new()).expect("it has a name");
    let name = name.into_string().expect("the name is text");
    let mut program_side = fs::File::options();
    let program_side = program_side.read(true).write(true).open(name);
    let program_side = program_side.expect("the terminal can be opened");
    let size = rustix::termios::Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&program_side, size).expect("the size can be set");
    let mut command = program();
    command
        .args(words(arguments))
        .env("NO_COLOR", "1")
        .env("TERM", "xterm")
        .env_remove("COLUMNS")
        .stdout(program_side)
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    // The command still holds the program's side of the terminal open.
    drop(command);
    let mut output = Vec::new();
    // Reading ends with an error once the program has closed its side.
    let _ = fs::File::from(terminal).read_to_end(&mut output);
    assert!(
        child.wait().expect("the program ends").success(),
        "{arguments}"
    );
    let output = String::from_utf8(output).expect("output is text");
    output.replace("\r\n", "\n")
}

/// Splits arguments at spaces.
pub(crate) fn words(arguments: &str) -> Vec<&str> {
    arguments.split_ascii_whitespace().collect()
}

/// A temporary folder for one test, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates an empty folder.
    pub(crate) fn new() -> Folder {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("classyard-cli-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the folder can be made");
        Folder(path)
    }

    /// Writes a file. Returns its path as text without spaces.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        fs::write(self.0.join(name), contents).expect("the file can be written");
        self.path(name)
    }

    /// Writes a script that can be started. Returns its path.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        // Another process writes the script: no process can start it while this one has
        // it open for writing.
        let written = Command::new("sh")
            .args(["-c", r#"printf %s "$2" > "$1" && chmod 755 "$1""#, "sh"])
            .args([&self.path(name), text])
            .status();
        assert!(written.expect("there is a shell").success());
        self.path(name)
    }

    /// Returns the path of a file.
    pub(crate) fn path(&self, name: &str) -> String {
        let path = self.0.join(name);
        path.to_str().expect("the path is text").to_owned()
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("the file was written")
    }

    /// True if a file exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the files are left in the temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the path of a file of the example.
pub(crate) fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/capture");
    path.join(name)
        .to_str()
        .expect("the path is text")
        .to_owned()
}

/// Returns the folder of ClassBench's files, if available: the nearest
/// `shared/classbench` above this crate.
pub(crate) fn classbench() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/classbench"))
        .find(|folder| folder.is_dir())
}

/// Three rules, a trace of four headers and their winners.
pub(crate) const RULES: &str = "\
schema ipv4-5tuple
allow src=10.0.0.0/8 dport=80 proto=tcp name=web
drop src=10.1.0.0/16
log dport=1000-2000
";

/// Headers for [`RULES`]. The winners are rule 0, rule 1, none and rule 2.
pub(crate) const TRACE: &str = "\
167837697 1 5 80 6
167837697 1 5 81 6
1 2 3 80 6
1 2 3 1500 17
";
