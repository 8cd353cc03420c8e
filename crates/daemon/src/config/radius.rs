//! `[radius]`, `[[radius.server]]` and `[[radius.client]]`: the servers to query, and the clients that may send
//! Disconnect-Requests and CoA-Requests.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use aaa::dynauth::{DynauthClient, DynauthConfig};
use aaa::radius::{Config, Nas, ServerConfig};
use base::Redacted;
use toml::de::DeTable;

use settings::Notes;
use settings::secret;
use settings::{Section, set};

/// The RADIUS settings of the configuration file.
#[derive(Clone, Debug)]
pub struct Radius {
    pub client: Config,
    /// The file that stores pending accounting records. Without it they are kept in memory.
    pub store: Option<PathBuf>,
    pub disconnect: Option<Disconnects>,
    /// Whether accounting records have counters of queues.
    pub accounting_queue: bool,
}

/// The address that receives Disconnect-Requests and CoA-Requests, and the clients that may send them.
#[derive(Clone, Debug)]
pub struct Disconnects {
    pub listen: SocketAddr,
    pub dynauth: DynauthConfig,
}

impl Radius {
    /// Whether any server authenticates subscribers.
    pub fn authenticates(&self) -> bool {
        let servers = &self.client.servers;
        servers.iter().any(|server| server.authentication.is_some())
    }

    /// The vendor number of the attributes with counters of queues, if records have them.
    pub fn queue_vendor(&self) -> Option<u32> {
        self.accounting_queue.then_some(self.client.queue.vendor)
    }

    /// Whether any server receives accounting records.
    pub fn accounts(&self) -> bool {
        let servers = &self.client.servers;
        servers.iter().any(|server| server.accounting.is_some())
    }
}

/// Reads the whole section. `host_name` is the default for our name.
pub(super) fn read(
    root: &DeTable<'_>,
    path: &Path,
    notes: &Notes<'_>,
    host_name: &str,
) -> Option<Radius> {
    let table = root.get("radius")?.get_ref().as_table();
    let mut section = Section::open(root, "radius", notes);
    let at = section.at();
    let identifier = section.string("nas_identifier");
    let identifier = identifier.map_or_else(|| host_name.to_owned(), |text| text.value);
    let address: Option<IpAddr> = address(&mut section, "nas_address", "192.0.2.1");
    let nas = Nas {
        identifier: Some(identifier.into()),
        address,
    };
    let mut client = Config::new(nas.clone());
    set(section.flag("acct_delay_time"), &mut client.acct_delay_time);
    if let Some(vendor) = section.integer("vendor_id", 1..=0xff_ffff, "") {
        client.queue.vendor = vendor.value as u32;
    }
    let mut accounting_queue = false;
    set(section.flag("accounting_queue"), &mut accounting_queue);
    let store = section.string("accounting_store");
    let store = store.map(|text| settings::beside(path, &text.value));
    let listen: Option<SocketAddr> = address_of(&mut section, "disconnect", "127.0.0.1:3799");
    section.known("server");
    section.known("client");
    section.finish();
    let mut dynauth = DynauthConfig::new(nas);
    dynauth.queue = client.queue;
    if let Some(table) = table {
        for mut section in Section::each(table, "server", "radius.server", notes) {
            client.servers.extend(server(&mut section, path));
            section.finish();
        }
        for mut section in Section::each(table, "client", "radius.client", notes) {
            dynauth.clients.extend(requester(&mut section, path));
            section.finish();
        }
    }
    for server in &client.servers {
        let addresses = [server.authentication, server.accounting];
        for address in addresses.into_iter().flatten().map(|one| one.ip()) {
            if dynauth.clients.iter().all(|known| known.address != address) {
                let secret = server.secret.clone();
                dynauth.clients.push(DynauthClient::new(address, secret));
            }
        }
    }
    if notes.is_empty() {
        if client.servers.is_empty() {
            let message = "has no server; give one: [[radius.server]] with authentication = \"127.0.0.1:1812\"";
            notes.at(at, "radius.server", message);
        } else if let Err(fault) = client.check() {
            notes.at(at, "radius.server", fault.to_string());
        }
    }
    Some(Radius {
        client,
        store,
        disconnect: listen.map(|listen| Disconnects { listen, dynauth }),
        accounting_queue,
    })
}

fn server(section: &mut Section, path: &Path) -> Option<ServerConfig> {
    let at = section.at();
    let authentication = address_of(section, "authentication", "127.0.0.1:1812");
    let accounting = address_of(section, "accounting", "127.0.0.1:1813");
    if !section.has("authentication") && !section.has("accounting") {
        let message = "is missing, and so is accounting; give one or both: authentication = \"127.0.0.1:1812\"";
        section.fault(at, "authentication", message);
    }
    let shown = authentication.or(accounting);
    let name = section.string("name").map(|text| text.value);
    let name = name.unwrap_or_else(|| shown.map_or_else(String::new, |at| at.ip().to_string()));
    let secret = shared_secret(section, path)?;
    let mut server = ServerConfig::new(&name, secret.reveal());
    (server.authentication, server.accounting) = (authentication, accounting);
    set(
        section.seconds("timeout_s", 0.05..=60.0),
        &mut server.timeout,
    );
    for (key, value) in [
        ("transmissions", &mut server.transmissions),
        ("dead_after", &mut server.dead_after),
    ] {
        if let Some(number) = section.integer(key, 1..=255, "") {
            *value = number.value as u8;
        }
    }
    set(
        section.seconds("dead_time_s", 0.1..=86_400.0),
        &mut server.dead_time,
    );
    set(
        section.flag("require_message_authenticator"),
        &mut server.require_message_authenticator,
    );
    if let Some(sockets) = section.integer("sockets", 1..=1_024, "") {
        server.sockets_max = sockets.value as u16;
    }
    Some(server)
}

fn requester(section: &mut Section, path: &Path) -> Option<DynauthClient> {
    section.require("address", "give the address that requests come from");
    let address = address(section, "address", "192.0.2.7");
    let secret = shared_secret(section, path)?;
    let (mut signed, mut dated) = (false, false);
    set(section.flag("require_message_authenticator"), &mut signed);
    set(section.flag("require_event_timestamp"), &mut dated);
    Some(DynauthClient {
        require_message_authenticator: signed,
        require_event_timestamp: dated,
        ..DynauthClient::new(address?, secret)
    })
}

fn shared_secret(section: &mut Section, path: &Path) -> Option<Redacted<Box<[u8]>>> {
    let secret = secret::required(section, path, "the secret shared with it")?;
    Some(Redacted::new(secret.reveal().as_slice().into()))
}

fn address(section: &mut Section, key: &'static str, example: &str) -> Option<IpAddr> {
    let address = section.from_text(key, "an IP address", example)?;
    Some(address.value)
}

fn address_of(section: &mut Section, key: &'static str, example: &str) -> Option<SocketAddr> {
    let address = section.from_text(key, "an address with a port", example)?;
    Some(address.value)
}
