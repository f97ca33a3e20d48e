//! Switches and their configurations with TLS.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustix::process::Signal;

use crate::support::{Folder, run};
use crate::switch_run::Background;

/// Writes `ca.pem`, and a key and a certificate of it for each name.
fn write_identities(folder: &Folder, names: &[&str]) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // If a certificate has the name of its CA, OpenSSL takes it for self-signed.
    params.distinguished_name.push(DnType::CommonName, "ca");
    folder.file(
        "ca.pem",
        params.self_signed(&key).expect("a certificate").pem(),
    );
    let issuer = Issuer::new(params, key);
    for name in names {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([format!("{name}.test")]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, *name);
        let certificate = params.signed_by(&key, &issuer).expect("a signature");
        folder.file(&format!("{name}-key.pem"), key.serialize_pem());
        folder.file(&format!("{name}.pem"), certificate.pem());
    }
}

/// The table of the files of `sw`.
const TLS: &str = "[tls]\nprivate-key = \"sw-key.pem\"\ncertificate = \"sw.pem\"\n\
                   ca-certificate = \"ca.pem\"\n";

#[test]
fn files_of_a_configuration_are_checked() {
    let folder = Folder::new();
    write_identities(&folder, &["sw"]);
    let addresses = "[listen]\nopenflow = [\"pssl:6653\"]\n";
    let file = folder.file("br0.toml", format!("{addresses}{TLS}"));
    let [key, certificate, ca] = ["sw-key.pem", "sw.pem", "ca.pem"].map(|name| folder.path(name));
    run(&format!("switch check-config {file}"))
        .exits(0)
        .silent()
        .prints(" Listens on ssl:0.0.0.0:6653\n")
        .prints(&format!(
            " TLS        private key {key}\n            certificate {certificate}\n            \
             CA {ca}\n"
        ));
    let report = run(&format!("switch check-config {file} --format json")).exits(0);
    let files = serde_json::json!({
        "private_key": key,
        "certificate": certificate,
        "ca_certificate": ca,
    });
    assert_eq!(report.json()["tls"], files);
    folder.file("sw.pem", "");
    run(&format!("switch check-config {file}"))
        .exits(2)
        .complains(&format!(
            "error: {certificate}: no certificate, but no PEM section; `certificate` of `[tls]` \
             needs a certificate between"
        ));
    std::fs::remove_file(&key).expect("a file");
    folder.file(
        "sw.pem",
        "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
    );
    run(&format!("switch check-config {file}"))
        .exits(2)
        .complains(&format!("error: {key}: No such file or directory"));
    let file = folder.file("br1.toml", addresses);
    run(&format!("switch check-config {file}"))
        .exits(2)
        .complains("error: `ssl:` needs a private key and certificates\n")
        .complains("expected a table `[tls]` with");
}

/// A switch whose options name the files serves `ovs-ofctl`, which uses OpenSSL.
#[test]
#[allow(clippy::print_stderr)]
fn a_switch_with_options_for_tls_runs() {
    let folder = Folder::new();
    write_identities(&folder, &["sw", "ctl"]);
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let [key, certificate, ca] = ["sw-key.pem", "sw.pem", "ca.pem"].map(|name| folder.path(name));
    let mut running = Background::switch(&format!(
        "--listen pssl:{port}:127.0.0.1 --private-key {key} --certificate {certificate} \
         --ca-certificate {ca} --run-dir {}",
        folder.path("run")
    ));
    let mut plain = TcpStream::connect(("127.0.0.1", port)).expect("a listening switch");
    plain
        .write_all(&[4, 0, 0, 8, 0, 0, 0, 1])
        .expect("an open connection");
    let _alert = plain.read_to_end(&mut Vec::new());
    running.wait_for(
        "WARN no TLS connection: the other end does not speak TLS; it may use plain TCP peer=",
    );
    let [key, certificate] = ["ctl-key.pem", "ctl.pem"].map(|name| folder.path(name));
    let show = Command::new("ovs-ofctl")
        .args(["-O", "OpenFlow13", "show", &format!("ssl:127.0.0.1:{port}")])
        .args([
            format!("--private-key={key}"),
            format!("--certificate={certificate}"),
            format!("--ca-cert={ca}"),
        ])
        .output();
    match show {
        Ok(show) => {
            let text = String::from_utf8_lossy(&show.stdout).into_owned();
            let messages = String::from_utf8_lossy(&show.stderr).into_owned();
            assert!(text.contains("dpid:0000000000000001"), "{text}\n{messages}");
        }
        Err(_) => eprintln!("SKIPPED ovs-ofctl over TLS: it is not installed"),
    }
    running.signal(Signal::TERM);
    running.ends_well();
}
