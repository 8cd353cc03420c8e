//! `[ppp]`, `[[pool]]`, `[users]`, `[client]` and `[tun]`: subscribers, their addresses and networks, and the device
//! that their packets use.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aaa::pools::{Pools, Range, Spec};
use aaa::prefixes::PrefixSpec;
use aaa::users::Known;
use aaa::{Prefix, Users};
use base::Redacted;
use edge::v6::PrefixWish;
use filter::FilterSet;
use ppp::Authentication;
use toml::de::{DeTable, DeValue};
use wire::pppoe::Vlans;

use super::garden;
use super::ipv6;
use super::nat::{self, Nat};
use super::pppoe;
use super::queue;
use super::radius::{self, Radius};
use super::realm;
use super::tunnel;
use super::vlans::VlanRange;
use settings::Notes;
use settings::secret;
use settings::{At, Faults, Section, set};

/// Maximum length of an interface name, in octets (`IFNAMSIZ`, netdevice(7)).
const NAME_OCTETS_MAX: usize = 15;

/// Maximum length of a client's user name. PAP's length field is one octet (RFC 1334, section 2.2.1), so this leaves
/// room for the session's number.
const NAME_MAX: usize = 240;

/// The subscriber settings of the configuration file.
#[derive(Clone, Debug)]
pub struct Subscribers {
    /// `[ppp]`, and the limits on subscribers.
    pub edge: edge::Config,
    /// `[[pool]]`
    pub pools: Vec<Spec>,
    /// `[[prefix_pool]]`
    pub prefix_pools: Vec<PrefixSpec>,
    /// `[users]`
    pub users: Option<UsersFile>,
    /// `[filter]`
    pub filters: Option<FiltersFile>,
    /// `[radius]`
    pub radius: Option<Radius>,
    /// `[[realm]]`
    pub realms: Arc<aaa::Realms>,
    /// `[throttle]`
    pub throttle: Option<aaa::ThrottleConfig>,
    /// `[client]`
    pub client: Option<Client>,
    /// `[tun]`
    pub tun: Option<Tun>,
    /// `[nat]`
    pub nat: Option<Nat>,
}

/// The users file, read and checked.
#[derive(Clone, Debug)]
pub struct UsersFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Its users.
    pub users: Arc<Users>,
}

/// The file of filters, read and checked. The default has none.
#[derive(Clone, Debug, Default)]
pub struct FiltersFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Its filters, compiled.
    pub set: Arc<FilterSet>,
}

/// The credentials and settings of client sessions, which the daemon opens itself.
#[derive(Clone, Debug)]
pub struct Client {
    /// The user name. `{n}` in it is replaced by the session's number, starting at 1.
    pub name: String,
    pub secret: Redacted<Vec<u8>>,
    /// Whether the host gets the sessions' addresses as its own.
    pub addresses: bool,
    /// The metric of the default route through one of the sessions. `None`: no default route.
    pub default_route: Option<u32>,
    /// Whether the sessions act on Router Advertisements and ask for a delegated IPv6 prefix.
    pub prefix: bool,
    /// The interface that gets an address of the delegated prefix.
    pub prefix_interface: Option<String>,
    /// Networks behind the client sessions.
    pub networks: Vec<Prefix>,
    /// The line that a PPPoE session is kept up on.
    pub pppoe: Option<ClientPppoe>,
}

/// The line of our PPPoE client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientPppoe {
    pub interface: String,
    pub vlans: Vlans,
    /// The Service-Name to ask for; empty is any.
    pub service: Box<[u8]>,
    /// The only access concentrator to accept.
    pub ac_name: Option<Box<[u8]>>,
}

/// The TUN device that carries subscribers' packets.
#[derive(Clone, Debug)]
pub struct Tun {
    pub name: String,
    pub mtu: u16,
    /// Networks routed to the device, besides those of the pools.
    pub routes: Vec<Prefix>,
    pub offloads: bool,
}

/// Reads all of these sections.
pub(super) fn read(
    root: &DeTable<'_>,
    path: &Path,
    notes: &Notes<'_>,
    host_name: &str,
    around: tunnel::Around<'_>,
) -> Subscribers {
    let mut edge = edge::Config::default();
    let own = ppp(root, notes, &mut edge);
    let mut queues = queue::read(root, notes);
    let pools = pools(root, notes, own, &mut queues);
    let prefix_pools = ipv6::prefix_pools(root, notes);
    edge.v6 = Arc::new(ipv6::settings(
        root,
        notes,
        &prefix_pools,
        edge.address.octets(),
    ));
    let (filters, set) = filters(root, path, notes, &mut edge);
    let v4 = edge.dns.into_iter().flatten().map(IpAddr::V4);
    let v6 = edge.v6.dns.iter().copied().map(IpAddr::V6);
    let dns: Vec<IpAddr> = v4.chain(v6).collect();
    edge.gardens = garden::read(root, notes, set.as_deref(), &dns);
    let mut switching = tunnel::read(root, path, notes, around);
    let [pool_names, filter_names] = known(&pools, set.as_deref());
    let names = Names {
        pools: pool_names,
        filters: filter_names,
        gardens: edge.gardens.iter().map(|one| &*one.name).collect(),
        prefixes: prefix_pools.iter().map(|pool| &*pool.name).collect(),
        tunnels: switching.tunnels.iter().map(|one| &*one.name).collect(),
    };
    let users = users(root, path, notes, &names, &queues);
    edge.queues = queues.finish(notes);
    let mut radius = radius::read(root, path, notes, host_name);
    if let Some(radius) = &mut radius {
        radius.client.queue.strict = edge.queues.defaults().strict;
    }
    let known = realm::Known {
        servers: radius.as_ref().map_or(&[], |radius| &radius.client.servers),
        pools: names.pools.as_deref(),
        filters: names.filters.as_deref(),
    };
    let realms = realm::read(root, notes, &known);
    let throttle = realm::throttle(root, notes);
    edge.accounting = radius.as_ref().is_some_and(Radius::accounts);
    let asks = radius.as_ref().is_some_and(Radius::authenticates);
    switching.is_on |= asks;
    edge.switching = Arc::new(switching);
    check(root, notes, &edge, (users.as_ref(), asks, pools.is_empty()));
    ipv6::advise(root, notes, &edge, &prefix_pools);
    let nat = nat::read(root, path, notes, (host_name, &edge));
    let client = client(root, path, notes);
    edge.uplink = client.as_ref().filter(|client| client.prefix).map(wish);
    Subscribers {
        edge,
        pools,
        prefix_pools,
        users,
        filters,
        radius,
        realms,
        throttle,
        client,
        tun: tun(root, notes),
        nat,
    }
}

/// Reports sections that lack another one, or have no effect beside it.
fn check(
    root: &DeTable<'_>,
    notes: &Notes<'_>,
    edge: &edge::Config,
    (users, asks, no_pool): (Option<&UsersFile>, bool, bool),
) {
    if !edge.terminate && notes.is_empty() {
        refuse_without_ppp(root, notes);
    }
    refuse_realms(root, notes, edge);
    check_sources(root, notes, edge, users.is_some(), asks);
    // A concentrator that hands sessions over needs no addresses.
    let hands_over = !edge.switching.tunnels.is_empty();
    if edge.terminate && !hands_over && no_pool && notes.is_empty() {
        let known = users.map(|file| &*file.users);
        without_pool(section_at(root, "ppp"), known, asks, notes);
    }
}

/// Reports tunnels that are chosen by names that nobody asks for.
fn refuse_realms(root: &DeTable<'_>, notes: &Notes<'_>, edge: &edge::Config) {
    let tunnels = &edge.switching.tunnels;
    let has_realms = tunnels.iter().any(|one| !one.realms.is_empty());
    if has_realms && !edge.terminate && notes.is_empty() {
        let message = "with realms is of no use without [ppp], which asks for names; give [ppp] with address = \"10.255.0.1\"";
        notes.at(section_at(root, "tunnel"), "tunnel", message);
    }
}

/// Reports methods of authentication without a source that knows users, and sources without a method.
fn check_sources(
    root: &DeTable<'_>,
    notes: &Notes<'_>,
    edge: &edge::Config,
    has_users: bool,
    asks: bool,
) {
    let wants_names = edge.terminate && !edge.ppp.authenticate.is_empty();
    if wants_names && !has_users && !asks && notes.is_empty() {
        notes.whole(
            "users",
            "is missing; give [users] with file = \"users.toml\", a [[radius.server]], or [ppp] authenticate = \"nobody\"",
        );
    }
    if edge.ppp.authenticate.contains(&Authentication::Eap) && !asks && notes.is_empty() {
        let message =
            "has \"eap\", which needs a server; give [[radius.server]], or leave \"eap\" out";
        notes.at(section_at(root, "ppp"), "ppp.authenticate", message);
    }
    if edge.terminate && !wants_names && has_users && !asks && notes.is_empty() {
        let message = "has no effect: with [ppp] authenticate = \"nobody\" no subscriber gives a name, and the file is searched by \
                       name; leave out one of the two";
        notes.at(section_at(root, "users"), "users", message);
    }
}

/// Reports each section that has no effect without `[ppp]`.
fn refuse_without_ppp(root: &DeTable<'_>, notes: &Notes<'_>) {
    for name in [
        "pool",
        "prefix_pool",
        "ipv6",
        "users",
        "radius",
        "realm",
        "throttle",
    ] {
        if root.contains_key(name) {
            let message = "is of no use without [ppp]; give [ppp] with address = \"10.255.0.1\", the edge's own";
            notes.at(section_at(root, name), name, message);
        }
    }
}

/// Reads `[ppp]`. Returns our own address.
fn ppp(root: &DeTable<'_>, notes: &Notes<'_>, edge: &mut edge::Config) -> Option<Ipv4Addr> {
    edge.terminate = root.contains_key("ppp");
    let mut section = Section::open(root, "ppp", notes);
    let own = addresses(&mut section, edge);
    authenticate(root, &mut section, &mut edge.ppp);
    timers(&mut section, &mut edge.ppp);
    set(section.flag("ipv6"), &mut edge.ipv6);
    set(section.flag("clamp_mss"), &mut edge.clamp_mss);
    set(section.flag("isolate"), &mut edge.isolate);
    let key = "interim_on_change";
    set(section.flag(key), &mut edge.interim_on_change);
    let year_s = 31_536_000.0;
    for (key, longest_s, to) in [
        ("setup_timeout_s", 3_600.0, &mut edge.setup_timeout),
        ("session_timeout_s", year_s, &mut edge.session_timeout),
        ("idle_timeout_s", year_s, &mut edge.idle_timeout),
        ("interim_interval_s", year_s, &mut edge.interim_interval),
    ] {
        set(section.seconds(key, 0.0..=longest_s), to);
    }
    if let Some(mtu) = section.integer("path_mtu", 576..=65_535, "octets") {
        edge.path_mtu = mtu.value as u16;
    }
    if let Some(most) = section.integer("subscribers", 1..=1 << 20, "") {
        edge.subscribers_max = most.value as u32;
        edge.routes_max = edge.subscribers_max.saturating_mul(4);
    }
    section.finish();
    own
}

/// Reads the edge's own addresses and the name servers. Returns our own IPv4 address.
fn addresses(section: &mut Section, edge: &mut edge::Config) -> Option<Ipv4Addr> {
    if edge.terminate {
        let remedy = "give the edge's own address: address = \"10.255.0.1\"";
        section.require("address", remedy);
    }
    let own: Option<At<Ipv4Addr>> = section.from_text("address", "an IPv4 address", "10.255.0.1");
    if let Some(At { value: address, at }) = own {
        edge.address = address;
        let is_host = !address.is_unspecified()
            && !address.is_loopback()
            && !address.is_multicast()
            && !address.is_broadcast();
        if !is_host {
            let message = format!("{address} is no address of a host; give one such as 10.255.0.1");
            section.fault(at, "address", message);
        }
    }
    set(
        section.from_text("address_v6", "an IPv6 address", "2001:db8::1"),
        &mut edge.address_v6,
    );
    let resolver = |text: &str| {
        let wrong = |_| format!("\"{text}\" is not an IPv4 address; write it as \"10.0.0.1\"");
        text.parse::<Ipv4Addr>().map_err(wrong)
    };
    let resolvers = section.list("dns", "10.0.0.1", resolver);
    if let Some(third) = resolvers.get(2) {
        let message = "has more than two; IPCP carries two (RFC 1877)";
        section.fault(third.at, "dns", message);
    }
    for (place, resolver) in edge.dns.iter_mut().zip(resolvers) {
        *place = Some(resolver.value);
    }
    own.map(|own| own.value)
}

/// Reads `authenticate`: a list of protocols, or "nobody".
fn authenticate(root: &DeTable<'_>, section: &mut Section, ppp: &mut ppp::Config) {
    ppp.authenticate = vec![Authentication::ChapMd5];
    if let Some(text) = authenticate_text(root) {
        let at = section.string("authenticate").map_or(0, |text| text.at);
        if text != "nobody" {
            let message = format!(
                "\"{text}\" is no list; write [\"chap\"], [\"pap\"], [\"mschapv2\"], [\"eap\"], several in the order of preference, or \"nobody\""
            );
            section.fault(at, "authenticate", message);
        }
        ppp.authenticate.clear();
    } else {
        let ways = [
            ("chap", Authentication::ChapMd5),
            ("pap", Authentication::Pap),
            ("mschapv2", Authentication::MsChapV2),
            ("eap", Authentication::Eap),
        ];
        if let Some(ways) = section.choices("authenticate", &ways) {
            ppp.authenticate = ways;
        }
    }
}

/// The value of `authenticate` if it is a single word.
fn authenticate_text(root: &DeTable<'_>) -> Option<String> {
    let section = root.get("ppp")?.get_ref().as_table()?;
    match section.get("authenticate")?.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        _ => None,
    }
}

fn timers(section: &mut Section, ppp: &mut ppp::Config) {
    for (key, range_s, to) in [
        ("restart_s", 0.1..=60.0, &mut ppp.restart),
        (
            "authentication_timeout_s",
            1.0..=600.0,
            &mut ppp.authentication_max,
        ),
        ("echo_interval_s", 0.0..=3_600.0, &mut ppp.echo_interval),
        (
            "rechallenge_interval_s",
            0.0..=86_400.0,
            &mut ppp.rechallenge_interval,
        ),
    ] {
        set(section.seconds(key, range_s), to);
    }
    for (key, value) in [
        ("configure_tries", &mut ppp.configure_max),
        ("terminate_tries", &mut ppp.terminate_max),
        ("failure_tries", &mut ppp.failure_max),
        ("echo_tries", &mut ppp.echo_max),
    ] {
        if let Some(tries) = section.integer(key, 1..=255, "") {
            *value = tries.value as u8;
        }
    }
    if let Some(mru) = section.integer("mru", 128..=9_216, "octets") {
        ppp.mru = mru.value as u16;
    }
    // RFC 1994, section 4.1: a name has at least 1 octet.
    if let Some(name) = section.sized("name", 1..=255) {
        ppp.name = name.value.as_bytes().to_vec();
    }
    set(section.flag("compress_headers"), &mut ppp.compress);
}

fn pools(
    root: &DeTable<'_>,
    notes: &Notes<'_>,
    own: Option<Ipv4Addr>,
    queues: &mut queue::Reading,
) -> Vec<Spec> {
    let mut specs = Vec::new();
    let mut places = Vec::new();
    for mut section in Section::each(root, "pool", "pool", notes) {
        let at = section.at();
        let mut spec = Spec {
            skip_ends: true,
            ..Spec::default()
        };
        section.require("name", "give the pool a name: name = \"home\"");
        if let Some(name) = section.string("name") {
            spec.name = name.value.into();
        }
        section.require("ranges", "give addresses: ranges = [\"10.0.0.0/24\"]");
        spec.ranges = ranges(&mut section, "ranges");
        spec.excluded = ranges(&mut section, "excluded");
        set(section.flag("skip_ends"), &mut spec.skip_ends);
        set(section.flag("sticky"), &mut spec.sticky);
        queues.pool(&mut section, &spec.name);
        section.finish();
        specs.push(spec);
        places.push(at);
    }
    if notes.is_empty()
        && let Err(faults) = Pools::new(specs.clone(), own.into_iter().collect(), 0)
    {
        for fault in faults {
            let at = places.get(fault.pool).copied().unwrap_or(0);
            let key = format!("pool[{}].{}", fault.pool + 1, fault.key);
            notes.at(at, key, fault.to_string());
        }
    }
    specs
}

fn ranges(section: &mut Section, key: &'static str) -> Vec<Range> {
    let ranges = section.list(key, "10.0.0.0/24", str::parse);
    ranges.into_iter().map(|range| range.value).collect()
}

/// Reports which subscribers get no address because there is no pool: all, or all without an address of their own.
fn without_pool(at: usize, users: Option<&Users>, asks: bool, notes: &Notes) {
    let remedy = "give [[pool]] with name = \"home\" and ranges = [\"10.64.0.0/16\"]";
    let (all, of_pools) = users.map_or((0, 0), |users| (users.len(), users.of_pools()));
    let message = match (of_pools, asks) {
        (0, true) => {
            "is missing: only a subscriber whose server assigns an address (Framed-IP-Address) can connect"
                .into()
        }
        (_, true) => format!(
            "is missing: {of_pools} of the {all} users of the file have no address of their own; of the others, \
             only a subscriber whose server assigns an address (Framed-IP-Address) can connect"
        ),
        (0, false) if all > 0 => return,
        (_, false) if of_pools < all => {
            format!("is missing: {of_pools} of the {all} users have no address of their own")
        }
        (_, false) => {
            let message = format!("is missing, and nobody has an address of its own; {remedy}");
            return notes.at(at, "pool", message);
        }
    };
    notes.advise(at, "pool", format!("{message}; {remedy}"));
}

/// The names that users may give. Those of a list with a fault are not known.
fn known<'n>(pools: &'n [Spec], filters: Option<&'n FilterSet>) -> [Option<Vec<&'n str>>; 2] {
    let pools: Vec<&str> = pools.iter().map(|pool| &*pool.name).collect();
    let pools = pools.iter().all(|name| !name.is_empty()).then_some(pools);
    [
        pools,
        filters.map(|set| set.iter().map(|(_, filter)| filter.name()).collect()),
    ]
}

/// What the users of a users file may name; `None` if the configuration has a fault there.
struct Names<'a> {
    pools: Option<Vec<&'a str>>,
    filters: Option<Vec<&'a str>>,
    gardens: Vec<&'a str>,
    prefixes: Vec<&'a str>,
    tunnels: Vec<&'a str>,
}

fn users(
    root: &DeTable<'_>,
    path: &Path,
    notes: &Notes<'_>,
    names: &Names<'_>,
    queues: &queue::Reading,
) -> Option<UsersFile> {
    if !root.contains_key("users") {
        return None;
    }
    let mut section = Section::open(root, "users", notes);
    section.require("file", "give the users' file: file = \"users.toml\"");
    let file = section.string("file")?;
    let path = settings::beside(path, &file.value);
    let (templates, links) = (queues.templates(), queues.links());
    let known = Known {
        pools: names.pools.as_deref(),
        prefix_pools: Some(&names.prefixes),
        filters: names.filters.as_deref(),
        gardens: Some(&names.gardens),
        tunnels: Some(&names.tunnels),
        templates: Some(&templates),
        links: Some(&links),
    };
    let users = private_text(&path).and_then(|text| {
        section.content("file", text.reveal().as_bytes());
        parse_users(&path, text.reveal(), known)
    });
    if let Err(faults) = &users {
        section.faults_of_file(file.at, "file", faults);
    }
    section.finish();
    let users = Arc::new(users.ok()?);
    Some(UsersFile { path, users })
}

/// Reads a users file, whose users may name any pool and filter. Only its owner and group may have read permission.
///
/// # Errors
/// Every fault of the file, or why it cannot be read.
pub fn load_users(path: &Path) -> Result<Users, Faults> {
    parse_users(path, private_text(path)?.reveal(), Known::default())
}

fn private_text(path: &Path) -> Result<Redacted<String>, Faults> {
    secret::private_text(path, USERS_OCTETS_MAX).map_err(|message| Faults::whole(path, "", message))
}

fn parse_users(path: &Path, text: &str, known: Known<'_>) -> Result<Users, Faults> {
    Users::parse_with(text, known).map_err(|faults| faults.of(path))
}

/// Maximum size of a users file: enough for a million users with long names.
const USERS_OCTETS_MAX: u64 = 1 << 30;

/// Reads `[filter]`. The set of filters is empty without that section, and `None` if it has a fault.
fn filters(
    root: &DeTable<'_>,
    path: &Path,
    notes: &Notes<'_>,
    edge: &mut edge::Config,
) -> (Option<FiltersFile>, Option<Arc<FilterSet>>) {
    if !root.contains_key("filter") {
        return (None, Some(Arc::default()));
    }
    let mut section = Section::open(root, "filter", notes);
    section.require("file", "give the rules' file: file = \"filters.txt\"");
    let file = section.string("file");
    let default = section.string("default");
    let read = file.and_then(|file| {
        let path = settings::beside(path, &file.value);
        let read = settings::text_of(&path).map_err(|faults| faults.lines());
        let read = read.and_then(|text| {
            section.content("file", text.as_bytes());
            let set = parse_filters(&path, &text)?;
            Ok((path, set))
        });
        let note = |faults: Vec<String>| {
            for fault in faults {
                section.fault(file.at, "file", fault);
            }
        };
        read.map_err(note).ok()
    });
    let Some((path, set)) = read else {
        section.finish();
        return (None, None);
    };
    if let Some(name) = default {
        if set.find(&name.value).is_none() {
            let message = format!("{} has no filter \"{}\"", path.display(), name.value);
            section.fault(name.at, "default", message);
        }
        edge.filter = Some(name.value.into());
    }
    section.finish();
    let set = Arc::new(set);
    let file = FiltersFile {
        path,
        set: Arc::clone(&set),
    };
    (Some(file), Some(set))
}

fn section_at(root: &DeTable<'_>, name: &str) -> usize {
    root.get(name).map_or(0, |value| value.span().start)
}

/// The filters of a text.
///
/// # Errors
/// One line for each fault: file, line, column, word, what is wrong and what would be right.
pub fn parse_filters(path: &Path, text: &str) -> Result<FilterSet, Vec<String>> {
    let read = FilterSet::parse(text, &crate::config::names());
    read.map(|(set, _)| set).map_err(|remarks| {
        let line = |fault: &filter::Remark| format!("{}:{fault}", path.display());
        remarks.faults.iter().map(line).collect()
    })
}

fn client(root: &DeTable<'_>, path: &Path, notes: &Notes<'_>) -> Option<Client> {
    if !root.contains_key("client") {
        return None;
    }
    let mut section = Section::open(root, "client", notes);
    section.require("name", "give the user's name: name = \"alice\"");
    let name = section.sized("name", 1..=NAME_MAX);
    let secret = secret::required(&mut section, path, "the password");
    let mut addresses = true;
    set(section.flag("addresses"), &mut addresses);
    let default_route = default_route(&mut section, addresses, root.contains_key("tun"));
    let mut prefix = false;
    set(section.flag("prefix"), &mut prefix);
    let prefix_interface = section.parsed("prefix_interface", pppoe::interface_name);
    if let Some(interface) = prefix_interface.as_ref().filter(|_| !prefix) {
        let message = "needs a delegated prefix: give prefix = true";
        section.fault(interface.at, "prefix_interface", message);
    }
    let networks = networks(&mut section, "networks");
    let pppoe = client_pppoe(&mut section);
    section.finish();
    Some(Client {
        name: name?.value.to_owned(),
        secret: secret?,
        addresses,
        default_route,
        prefix,
        prefix_interface: prefix_interface.map(|one| one.value),
        networks,
        pppoe,
    })
}

/// The request for a prefix. The DUID depends on the user's name alone, so that it is the same after every start.
fn wish(client: &Client) -> PrefixWish {
    let bytes = client.name.bytes();
    // FNV-1a, 32 bits.
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    PrefixWish {
        duid: edge::v6::duid(hash.to_be_bytes()),
        iaid: 1,
        length: None,
        rapid_commit: true,
    }
}

/// Reads the keys of the PPPoE line.
fn client_pppoe(section: &mut Section<'_>) -> Option<ClientPppoe> {
    let interface = section.parsed("pppoe", pppoe::interface_name);
    let vlans = section.parsed("pppoe_vlan", |text| {
        let range: Result<VlanRange, _> = text.parse();
        let single = range.ok().and_then(|range| range.single());
        single.ok_or_else(|| {
            format!("\"{text}\" is not one VLAN; write \"100\", or \"300.7\" with an inner tag")
        })
    });
    let service = section.parsed("pppoe_service", pppoe::service);
    let ac_name = section.sized("pppoe_ac", 1..=255);
    Some(ClientPppoe {
        interface: interface?.value,
        vlans: vlans.map_or(Vlans::NONE, |vlans| vlans.value),
        service: service.map_or_else(Box::default, |service| service.value),
        ac_name: ac_name.map(|name| name.value.as_bytes().into()),
    })
}

/// The metric of the default route through a client session. `None`: no default route.
fn default_route(section: &mut Section, addresses: bool, has_tun: bool) -> Option<u32> {
    let wanted = section.flag("default_route");
    let metric = section.integer("default_route_metric", 0..=i64::from(u32::MAX), "");
    let wanted = wanted.filter(|flag| flag.value)?;
    let missing = match (has_tun, addresses) {
        (true, true) => return Some(metric.map_or(0, |metric| metric.value as u32)),
        (false, _) => "needs a device: give [tun]",
        (true, false) => "needs the clients' addresses on the host: leave addresses = false out",
    };
    section.fault(wanted.at, "default_route", missing);
    None
}

fn tun(root: &DeTable<'_>, notes: &Notes<'_>) -> Option<Tun> {
    if !root.contains_key("tun") {
        return None;
    }
    let mut section = Section::open(root, "tun", notes);
    let mut tun = Tun {
        name: "headend%d".into(),
        mtu: 1_500,
        routes: Vec::new(),
        offloads: true,
    };
    if let Some(name) = section.string("name") {
        let fits = (1..=NAME_OCTETS_MAX).contains(&name.value.len());
        if !fits || name.value.contains(['/', ' ', ':']) {
            let message = format!("must be an interface's name of 1 to {NAME_OCTETS_MAX} octets");
            section.fault(name.at, "name", message);
        }
        tun.name = name.value;
    }
    if let Some(mtu) = section.integer("mtu", 576..=65_535, "octets") {
        tun.mtu = mtu.value as u16;
    }
    tun.routes = networks(&mut section, "routes");
    set(section.flag("offloads"), &mut tun.offloads);
    section.finish();
    Some(tun)
}

/// Reads a list of networks.
fn networks(section: &mut Section, key: &'static str) -> Vec<Prefix> {
    let network = |text: &str| {
        prefix(text).ok_or_else(|| {
            format!(
                "\"{text}\" is no network; write it as \"10.0.0.0/8\" or \"2001:db8::/32\", without bits behind its length"
            )
        })
    };
    let networks = section.list(key, "10.0.0.0/8", network);
    networks.into_iter().map(|network| network.value).collect()
}

pub(super) fn prefix(text: &str) -> Option<Prefix> {
    let (address, length) = text.split_once('/')?;
    Prefix::new(address.parse::<IpAddr>().ok()?, length.parse().ok()?)
}
