//! What a configuration asks of its host. No I/O, except that the file is read a second time for the names of its
//! secret files.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use base::Redacted;
use daemon::config::{Settings, Sockets};
use reactor::PollerKind;

/// Everything that the daemon will ask the host for.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    pub(crate) ports: Vec<Port>,
    /// Source addresses that must be this host's: BGP's `local_address`.
    pub(crate) sources: Vec<IpAddr>,
    /// The name of the TUN device.
    pub(crate) tun: Option<String>,
    /// The Ethernet interfaces of PPPoE.
    pub(crate) ethernet: Vec<String>,
    /// Whether packets of subscribers are forwarded by the host.
    pub(crate) forwards: bool,
    pub(crate) forwards_v6: bool,
    /// Whether learned routes go to the kernel.
    pub(crate) installs: bool,
    pub(crate) receive_buffer_bytes: u64,
    pub(crate) send_buffer_bytes: u64,
    /// Descriptors at the start with all configured peers, and at every limit.
    pub(crate) descriptors: (u64, u64),
    pub(crate) shards: u16,
    pub(crate) io_uring: bool,
    pub(crate) servers: Vec<Server>,
    pub(crate) nas_identifier: Vec<u8>,
    pub(crate) files: Vec<(PathBuf, FileUse)>,
    pub(crate) control: Option<PathBuf>,
    /// Whether the configuration file has a secret in it.
    pub(crate) has_secret: bool,
    pub(crate) path_mtu: u32,
    pub(crate) neighbours: Vec<IpAddr>,
    /// L2TP peers given on the command line.
    pub(crate) peers: Vec<IpAddr>,
    pub(crate) bgp_signs: bool,
    pub(crate) bgp_gtsm: bool,
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Udp,
    Tcp,
}

impl Protocol {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        }
    }
}

/// An address that the daemon binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) key: &'static str,
    pub(crate) is_optional: bool,
}

/// A RADIUS server's address for one purpose.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) is_accounting: bool,
    pub(crate) secret: Redacted<Box<[u8]>>,
    pub(crate) requires_signature: bool,
}

/// What the daemon does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileUse {
    /// The configuration itself: it is read at the start and at each reload.
    Configuration,
    /// A file with secrets: others may not read it.
    Secret,
    /// Any other file that is read.
    Read,
    /// The control socket: made in its directory.
    Socket,
    /// The store of accounting records: made and written.
    Store,
}

impl FileUse {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Configuration => "the configuration",
            Self::Secret => "the file with secrets",
            Self::Read => "the file",
            Self::Socket => "the control socket",
            Self::Store => "the accounting store",
        }
    }
}

/// Descriptors of an idle daemon: standard streams, poller, signals, wakers, netlink, random numbers.
const OWN_DESCRIPTORS: u64 = 16;

impl Wants {
    /// What a host needs for an LNS with a TUN device, if no configuration is given.
    pub(crate) fn without_configuration() -> Self {
        let event = daemon::config::Event::default();
        Self {
            ports: vec![Port {
                address: SocketAddr::from(([0, 0, 0, 0], 1701)),
                protocol: Protocol::Udp,
                key: "lns.listen",
                is_optional: false,
            }],
            tun: Some("headend0".into()),
            forwards: true,
            receive_buffer_bytes: event.receive_buffer_bytes as u64,
            send_buffer_bytes: event.send_buffer_bytes as u64,
            descriptors: (OWN_DESCRIPTORS + 64, OWN_DESCRIPTORS + 64),
            shards: 1,
            path_mtu: 1500,
            ..Self::default()
        }
    }

    /// What `settings`, read from `path`, ask for.
    pub(crate) fn of(settings: &Settings, path: &Path) -> Self {
        let subscribers = &settings.subscribers;
        let event = &settings.event;
        let mut wants = Self {
            tun: subscribers.tun.as_ref().map(|tun| tun.name.clone()),
            ethernet: settings
                .pppoe_interfaces()
                .into_iter()
                .map(|one| one.name)
                .collect(),
            forwards: subscribers.tun.is_some() && subscribers.edge.terminate,
            receive_buffer_bytes: event.receive_buffer_bytes as u64,
            send_buffer_bytes: event.send_buffer_bytes as u64,
            shards: event.shards,
            io_uring: event.poller == PollerKind::IoUring,
            control: Some(settings.control.socket.clone()),
            path_mtu: subscribers.edge.path_mtu.into(),
            ..Self::default()
        };
        wants.forwards_v6 = wants.forwards && subscribers.edge.ipv6;
        wants.listen(settings);
        wants.radius(settings);
        wants.bgp(settings);
        wants.files(settings, path);
        wants.descriptors = wants.count_descriptors(settings);
        wants
    }

    fn listen(&mut self, settings: &Settings) {
        for (role, key) in [(&settings.lns, "lns.listen"), (&settings.lac, "lac.listen")] {
            let listen = role.iter().flat_map(|role| &role.listen);
            self.ports.extend(listen.map(|listen| Port {
                address: listen.addr,
                protocol: Protocol::Udp,
                key,
                is_optional: listen.optional,
            }));
        }
    }

    fn radius(&mut self, settings: &Settings) {
        let Some(radius) = &settings.subscribers.radius else {
            return;
        };
        if let Some(disconnect) = &radius.disconnect {
            self.ports.push(Port {
                address: disconnect.listen,
                protocol: Protocol::Udp,
                key: "radius.disconnect",
                is_optional: false,
            });
        }
        let identifier = radius.client.nas.identifier.as_deref();
        self.nas_identifier = identifier.unwrap_or("headend").as_bytes().to_vec();
        for server in &radius.client.servers {
            for (address, is_accounting) in
                [(server.authentication, false), (server.accounting, true)]
            {
                self.servers.extend(address.map(|address| Server {
                    name: server.name.to_string(),
                    address,
                    is_accounting,
                    secret: server.secret.clone(),
                    requires_signature: server.require_message_authenticator,
                }));
            }
        }
    }

    fn bgp(&mut self, settings: &Settings) {
        let Some(bgp) = &settings.bgp else {
            return;
        };
        self.ports.extend(bgp.listen.iter().map(|listen| Port {
            address: listen.address,
            protocol: Protocol::Tcp,
            key: "bgp.listen",
            is_optional: listen.is_optional,
        }));
        self.installs = bgp.install.is_some();
        self.bgp_signs = !bgp.signatures().is_empty();
        let speaker = &bgp.speaker;
        self.neighbours = speaker.peers.iter().map(|peer| peer.remote).collect();
        self.sources = speaker.peers.iter().filter_map(|peer| peer.local).collect();
        let peers = speaker.peers.iter().map(|peer| &peer.settings);
        let mut all = peers.chain(speaker.dynamic.iter().map(|dynamic| &dynamic.settings));
        self.bgp_gtsm = all.any(|settings| settings.transport.ttl_min.is_some());
    }

    fn files(&mut self, settings: &Settings, path: &Path) {
        let mut files = vec![(path.to_owned(), FileUse::Configuration)];
        if let Ok(text) = settings::text_of(path)
            && let Ok(table) = text.parse::<toml::Table>()
        {
            self.has_secret = walk_secrets(&table, path, &mut files);
        }
        let subscribers = &settings.subscribers;
        if let Some(users) = &subscribers.users {
            files.push((users.path.clone(), FileUse::Secret));
        }
        if let Some(filters) = &subscribers.filters {
            files.push((filters.path.clone(), FileUse::Read));
        }
        let radius = subscribers.radius.as_ref();
        if let Some(store) = radius.and_then(|radius| radius.store.as_ref()) {
            files.push((store.clone(), FileUse::Store));
        }
        files.push((settings.control.socket.clone(), FileUse::Socket));
        self.files = files;
    }

    /// Descriptors at the start with every configured peer, and with every table full.
    fn count_descriptors(&self, settings: &Settings) -> (u64, u64) {
        let shards = u64::from(settings.event.shards);
        let tun = u64::from(self.tun.is_some());
        let bgp = settings.bgp.as_ref();
        let neighbours = bgp.map_or(0, |bgp| bgp.speaker.peers.len() as u64);
        let listening = self.ports.len() as u64;
        let few = OWN_DESCRIPTORS
            + reactor::limits::DESCRIPTOR_RESERVE
            + listening * shards
            + tun * shards
            + shards
            + neighbours
            + self.servers.len() as u64;
        let roles = [&settings.lns, &settings.lac];
        let mut roles = roles.into_iter().flatten();
        let per_tunnel = roles.any(|role| role.sockets == Sockets::PerTunnel);
        let tunnels = u64::from(settings.l2tp.limits.tunnels) * u64::from(per_tunnel);
        let dynamic = bgp.map_or(0, |bgp| {
            let any = !bgp.speaker.dynamic.is_empty();
            u64::from(bgp.speaker.limits.dynamic_peers_max) * u64::from(any)
        });
        let radius = settings.subscribers.radius.iter();
        let servers = radius.flat_map(|radius| &radius.client.servers);
        let sockets: u64 = servers.map(|server| u64::from(server.sockets_max)).sum();
        let many = few + settings.control.clients as u64 + tunnels + dynamic + sockets;
        (few, many)
    }
}

/// Adds the secret files below `table`. Whether the table has a secret itself.
fn walk_secrets(table: &toml::Table, config: &Path, files: &mut Vec<(PathBuf, FileUse)>) -> bool {
    let mut has_secret = false;
    for (key, value) in table {
        match value {
            toml::Value::String(_) if key == "secret" => has_secret = true,
            toml::Value::String(name) if key == "secret_file" => {
                let path = settings::beside(config, name);
                if files.iter().all(|(known, _)| *known != path) {
                    files.push((path, FileUse::Secret));
                }
            }
            toml::Value::Table(table) => has_secret |= walk_secrets(table, config, files),
            toml::Value::Array(list) => {
                for table in list.iter().filter_map(toml::Value::as_table) {
                    has_secret |= walk_secrets(table, config, files);
                }
            }
            _ => {}
        }
    }
    has_secret
}
