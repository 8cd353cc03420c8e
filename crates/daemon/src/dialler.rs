//! User names and passwords of the sessions in which we are the client.

use base::Redacted;
use edge::Dial;
use ppp::Credentials;

use crate::config::Client;

/// The credentials that our client sessions authenticate with.
pub(super) struct Dialler {
    client: Client,
    /// Number of sessions opened so far.
    number: u64,
}

impl Dialler {
    pub(super) fn new(client: Client) -> Self {
        Self { client, number: 0 }
    }

    /// Takes over what the next sessions use. The numbers of sessions go on.
    pub(super) fn reload(&mut self, client: Client) {
        self.client = client;
    }

    /// Credentials of the next session.
    pub(super) fn next(&mut self) -> Dial {
        self.number += 1;
        let name = self.client.name.replace("{n}", &self.number.to_string());
        let credentials = Credentials {
            name: name.into_bytes().into(),
            secret: Redacted::new(self.client.secret.reveal().as_slice().into()),
        };
        Dial {
            credentials: Some(credentials),
            ipv4: true,
            ipv6: true,
            networks: self.client.networks.clone(),
        }
    }
}
