//! TLS: who is spoken with, and who is not.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::client::{get, send};
use super::{Directory, flags, start};
use crate::tls;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/tls")
        .join(name)
}

/// Flags with files of the test data.
fn with<'a>(words: &[&'a str], files: &'a [(&'a str, String)]) -> Vec<&'a str> {
    let files = files.iter().flat_map(|(flag, path)| [*flag, path.as_str()]);
    words.iter().copied().chain(files).collect()
}

fn files<'a>(names: &[(&'a str, &str)]) -> Vec<(&'a str, String)> {
    let path = |name: &str| file(name).to_str().unwrap().to_owned();
    let named = names.iter();
    named.map(|(flag, name)| (*flag, path(name))).collect()
}

/// Asks for `/api/info` over TLS, with a client certificate if one is named, and returns the first line of the answer.
fn ask(server: SocketAddr, client: Option<&str>) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(file("ca.pem")).unwrap();
    roots.add(authority).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let certificate = CertificateDer::from_pem_file(file(&format!("{name}.pem"))).unwrap();
            let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).unwrap();
            builder
                .with_client_auth_cert(vec![certificate], key)
                .unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(server)?);
    stream.write_all(b"GET /api/info HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

const CERTIFICATE: [(&str, &str); 2] = [("--tls-cert", "server.pem"), ("--tls-key", "server.key")];

#[test]
fn a_page_is_served_over_tls_only() {
    let directory = Directory::new("tls");
    let files = files(&CERTIFICATE);
    let server = start(&directory.socket(), &with(&[], &files));
    assert_eq!(ask(server, None).unwrap(), "HTTP/1.1 200 OK");
    // Plain HTTP gets an alert or the end, and hurts nobody.
    let mut answer = Vec::new();
    let mut stream = send(server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // A reset is an end too.
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));
    assert_eq!(ask(server, None).unwrap(), "HTTP/1.1 200 OK");
}

#[test]
fn a_client_certificate_of_another_authority_opens_nothing() {
    let directory = Directory::new("client");
    let files = files(&[CERTIFICATE[0], CERTIFICATE[1], ("--client-ca", "ca.pem")]);
    let server = start(&directory.socket(), &with(&[], &files));
    assert_eq!(ask(server, Some("client")).unwrap(), "HTTP/1.1 200 OK");
    for wrong in [None, Some("stranger"), Some("server")] {
        assert!(ask(server, wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_wrong_file_is_named() {
    let fault = |names: &[(&'static str, &str)]| {
        let files = files(names);
        let args = flags(&with(&[], &files));
        format!("{:#}", tls::acceptor(&args).err().unwrap())
    };
    let other_key = fault(&[("--tls-cert", "server.pem"), ("--tls-key", "client.key")]);
    assert!(
        other_key.contains("client.key is not the key of "),
        "{other_key}"
    );
    let no_key = fault(&[("--tls-cert", "server.pem"), ("--tls-key", "ca.pem")]);
    assert!(no_key.contains("ca.pem: no private key"), "{no_key}");
    let no_certificate = fault(&[("--tls-cert", "README.md"), ("--tls-key", "server.key")]);
    assert!(
        no_certificate.contains("README.md: there is no certificate"),
        "{no_certificate}"
    );
    let missing = fault(&[("--tls-cert", "none.pem"), ("--tls-key", "server.key")]);
    assert!(missing.contains("none.pem: cannot read"), "{missing}");
}

#[test]
fn without_flags_there_is_no_tls() {
    let directory = Directory::new("plain");
    assert!(tls::acceptor(&flags(&[])).unwrap().is_none());
    let server = start(&directory.socket(), &[]);
    assert_eq!(get(server, "/").status, 200);
}
