//! The command line, and which of it may listen where.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use cli::Socket;

/// Serve pages and metrics of a running daemon.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct WebArgs {
    #[command(flatten)]
    pub(crate) socket: Socket,
    /// The control socket of "headend qos run", for the page of queues
    #[arg(long, value_name = "PATH")]
    pub(crate) qos_socket: Option<PathBuf>,
    /// The address and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Ask for the token in this file, which only its owner may read
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Speak TLS with the certificates in this PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Ask for a client certificate that an authority in this PEM file signed
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Serve a network without TLS: everyone on the way can read the pages and the token
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) insecure_http: bool,
    /// Let viewers disconnect subscribers, capture their packets and change the rate of the line
    #[arg(long)]
    pub(crate) allow_changes: bool,
    /// BGP peers with metrics of their own; the sums cover all peers
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) metrics_peers: usize,
    /// A further host name by which browsers may reach a server without token and certificate, such as that of a proxy
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
}

const HELP: &str = "\
An address other than a loopback address needs --token-file or --client-ca, and --tls-cert or --insecure-http.

Examples:
  headend web
  headend web --qos-socket /run/headend-qos.sock --listen 127.0.0.1:0
  headend web --listen 0.0.0.0:8443 --token-file token --tls-cert cert.pem --tls-key key.pem
  curl -H \"Authorization: Bearer $(cat token)\" https://edge1:8443/metrics";

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080".to_owned()
    })
}

impl WebArgs {
    /// Says in a line what is open at `address`.
    ///
    /// # Errors
    /// It may not be open there; the message says which flags it needs.
    pub(crate) fn check_open(&self, address: SocketAddr) -> Result<String> {
        let is_local = address.ip().to_canonical().is_loopback();
        let proof = match (&self.token_file, &self.client_ca) {
            (Some(_), Some(_)) => "with the token and a client certificate",
            (Some(_), None) => "with the token",
            (None, Some(_)) => "with a client certificate",
            (None, None) if is_local => "without a token, for every account of this host",
            (None, None) => bail!(
                "{address} is open to the network: add --token-file FILE, or --client-ca FILE with --tls-cert and \
                 --tls-key; without them only a loopback address such as 127.0.0.1:8080 is served"
            ),
        };
        let is_plain = self.tls_cert.is_none();
        if !is_local && is_plain && !self.insecure_http {
            bail!(
                "{address} is open to the network: add --tls-cert FILE and --tls-key FILE; or add --insecure-http if \
                 nobody on the way may harm you"
            );
        }
        let scope = if is_local { "this host" } else { "the network" };
        let wire = match (is_plain, is_local) {
            (false, _) => ", over TLS",
            (true, true) => "",
            (true, false) => ", WITHOUT TLS",
        };
        let use_of = if self.allow_changes {
            "viewers may disconnect and capture subscribers, and change rates"
        } else {
            "read-only"
        };
        Ok(format!("open to {scope} {proof}{wire}; {use_of}"))
    }

    /// The scheme of the page's address.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls_cert.is_some() {
            "https"
        } else {
            "http"
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::flags;

    #[test]
    fn a_wrong_address_names_right_ones() {
        for text in [
            "127.0.0.1",
            ":8080",
            "localhost:8080",
            "::1:8080",
            "127.0.0.1:99999",
        ] {
            let error = super::address(text).unwrap_err();
            assert!(error.contains("127.0.0.1:8080 or [::1]:8080"), "{text}");
        }
        assert!(super::address("[::1]:0").is_ok());
    }

    #[test]
    fn a_network_needs_a_proof_and_tls() {
        let judge = |address: &str, more: &[&str]| {
            let open = flags(more).check_open(address.parse().unwrap());
            open.map_err(|error| error.to_string())
        };
        let local = "open to this host without a token, for every account of this host; read-only";
        assert_eq!(judge("127.0.0.1:1", &[]).unwrap(), local);
        assert_eq!(judge("[::1]:1", &[]).unwrap(), local);
        assert_eq!(judge("[::ffff:127.0.0.1]:1", &[]).unwrap(), local);

        let token: &[&str] = &["--token-file", "t"];
        let tls: &[&str] = &["--tls-cert", "c", "--tls-key", "k"];
        for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:192.0.2.1]:1"] {
            for weak in [&[][..], tls, &["--insecure-http"]] {
                let error = judge(address, weak).unwrap_err();
                assert!(
                    error.contains("add --token-file"),
                    "{address} {weak:?}: {error}"
                );
            }
            let error = judge(address, token).unwrap_err();
            assert!(error.contains("add --tls-cert"), "{address}: {error}");
        }
        let open = |more: &[&[&str]]| judge("0.0.0.0:1", &more.concat()).unwrap();
        assert_eq!(
            open(&[token, tls]),
            "open to the network with the token, over TLS; read-only"
        );
        assert_eq!(
            open(&[token, &["--insecure-http", "--allow-changes"]]),
            "open to the network with the token, WITHOUT TLS; viewers may disconnect and capture subscribers, and change rates"
        );
        assert_eq!(
            open(&[tls, &["--client-ca", "a"]]),
            "open to the network with a client certificate, over TLS; read-only"
        );
    }
}
