//! The sections `[topology]`, `[routers]`, `[[router]]`, `[links]` and `[[link]]`.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use settings::{At, Notes, Section, set};
use toml::de::DeTable;

use crate::topology::{
    Detection, GraphShape, LINKS_MAX, LinkSettings, ROUTERS_MAX, Relation, RouterSettings, Shape,
    Tier, Topology, Transport,
};

/// The topology and shares that the sections describe.
pub(super) struct LaidOut {
    pub(super) topology: Topology,
    /// Share of routers whose prefixes have a route origin authorisation (RFC 6482).
    pub(super) authorised_share: f64,
}

/// Longest interval that a scenario can configure for a router, in seconds.
const INTERVAL_S_MAX: f64 = 65_535.0;
/// Longest delay of a link, in milliseconds.
const DELAY_MS_MAX: f64 = 3_600_000.0;

/// The source of the routers.
enum Source {
    Shape(Shape),
    Caida(PathBuf, usize),
}

/// The shares of all routers that `[routers]` gives.
#[derive(Clone, Copy)]
struct Shares {
    validating: f64,
    roles: f64,
    authorised: f64,
}

/// Routers whose own `[[router]]` section sets the key, so the shares do not apply to them.
#[derive(Default)]
struct Told {
    validating: HashSet<u32>,
    roles: HashSet<u32>,
}

/// Reads the sections. `None` if the faults leave no usable topology.
pub(super) fn read(
    root: &DeTable<'_>,
    folder: &Path,
    seed: u64,
    notes: &Notes<'_>,
) -> Option<LaidOut> {
    let mut router = RouterSettings::DEFAULT;
    let mut shares = Shares {
        validating: 0.0,
        roles: 0.0,
        authorised: 1.0,
    };
    let mut section = Section::open(root, "routers", notes);
    behaviour(&mut section, &mut router);
    set(
        section.number("rov_share", 0.0..=1.0, ""),
        &mut shares.validating,
    );
    set(
        section.number("roles_share", 0.0..=1.0, ""),
        &mut shares.roles,
    );
    set(
        section.number("roa_share", 0.0..=1.0, ""),
        &mut shares.authorised,
    );
    section.finish();
    let mut link = LinkSettings::DEFAULT;
    let mut section = Section::open(root, "links", notes);
    carriage(&mut section, &mut link);
    section.finish();
    let section = Section::open(root, "topology", notes);
    let source = match section.is_given() {
        true => shape(section, folder)?,
        false => Source::Shape(Shape::Explicit),
    };
    let file = match &source {
        Source::Shape(_) => None,
        Source::Caida(path, at) => Some((path.clone(), *at)),
    };
    let mut topology = match source {
        Source::Shape(shape) => Topology::new(&shape, seed, router, link),
        Source::Caida(path, at) => caida(&path, at, router, link, notes)?,
    };
    let mut told = Told::default();
    for section in Section::each(root, "router", "router", notes) {
        one_router(section, &mut topology, router, &mut told);
    }
    share_out(&mut topology, seed, shares, &told);
    for section in Section::each(root, "link", "link", notes) {
        one_link(section, &mut topology, link);
    }
    settle(&mut topology);
    advise_on_cycle(&topology, file, notes);
    if topology.routers.is_empty() {
        notes.whole(
            "topology",
            "has no router; give [topology] a kind, or list routers as [[router]]",
        );
        return None;
    }
    Some(LaidOut {
        topology,
        authorised_share: shares.authorised,
    })
}

fn shape(mut section: Section<'_>, folder: &Path) -> Option<Source> {
    let kinds = [
        "mesh", "ring", "tree", "clos", "random", "caida", "explicit",
    ];
    section.require("kind", "write for example kind = \"mesh\"");
    let kind = section.choice("kind", &kinds.map(|kind| (kind, kind)))?;
    let source = match kind.value {
        "mesh" => count(&mut section, "routers", 2_000).map(|routers| Shape::Mesh { routers }),
        "ring" => {
            count(&mut section, "routers", ROUTERS_MAX).map(|routers| Shape::Ring { routers })
        }
        "tree" => {
            let fanout = section
                .integer("fanout", 1..=1_000, "")
                .map_or(2, |f| f.value as usize);
            let routers = count(&mut section, "routers", ROUTERS_MAX);
            routers.map(|routers| Shape::Tree { routers, fanout })
        }
        "clos" => clos(&mut section),
        "random" => random(&mut section).map(Shape::Random),
        "caida" => {
            section.require("file", "write for example file = \"20250101.as-rel2.txt\"");
            let file = section.string("file");
            section.finish();
            return file.map(|file| Source::Caida(folder.join(file.value), file.at));
        }
        _ => Some(Shape::Explicit),
    };
    section.finish();
    source.map(Source::Shape)
}

/// Reads a mandatory number of routers.
fn count(section: &mut Section<'_>, key: &'static str, max: usize) -> Option<usize> {
    section.require(key, &format!("write for example {key} = 100"));
    let count = section.integer(key, 1..=max as i64, "")?;
    Some(count.value as usize)
}

fn clos(section: &mut Section<'_>) -> Option<Shape> {
    let pods = section
        .integer("pods", 1..=1_000, "")
        .map_or(1, |pods| pods.value as usize);
    let cores = section
        .integer("cores", 0..=10_000, "")
        .map_or(0, |cores| cores.value as usize);
    let leaves = count(section, "leaves", 10_000)?;
    let spines = count(section, "spines", 1_000)?;
    let routers = pods * (leaves + spines) + cores;
    let links = pods * (leaves * spines + cores);
    if routers > ROUTERS_MAX || links > LINKS_MAX {
        let at = section.at();
        let message = format!(
            "are {routers} routers and {links} links; there can be {ROUTERS_MAX} and {LINKS_MAX}"
        );
        section.fault(at, "pods", message);
        return None;
    }
    Some(Shape::Clos {
        pods,
        leaves,
        spines,
        cores,
    })
}

fn random(section: &mut Section<'_>) -> Option<GraphShape> {
    let routers = count(section, "routers", ROUTERS_MAX)?;
    let mut shape = GraphShape::internet(routers);
    if let Some(top) = section.integer("top", 1..=routers.min(100) as i64, "routers") {
        shape.top = top.value as usize;
    }
    set(
        section.number("stub_share", 0.0..=0.99, ""),
        &mut shape.stub_share,
    );
    set(
        section.number("providers_mean", 1.0..=8.0, ""),
        &mut shape.providers_mean,
    );
    set(
        section.number("peers_mean", 0.0..=50.0, ""),
        &mut shape.peers_mean,
    );
    Some(shape)
}

fn caida(
    path: &Path,
    at: usize,
    router: RouterSettings,
    link: LinkSettings,
    notes: &Notes<'_>,
) -> Option<Topology> {
    let read = crate::files::open(path)
        .map_err(|error| error.to_string())
        .and_then(|file| {
            Topology::from_caida(file, router, link).map_err(|fault| fault.to_string())
        });
    match read {
        Ok(topology) => Some(topology),
        Err(message) => {
            notes.at(
                at,
                "topology.file",
                format!("{}: {message}", path.display()),
            );
            None
        }
    }
}

/// Most routers of a provider cycle that advice names.
const NAMED_MAX: usize = 20;

/// Advises against a cycle of providers. `file` is the file of AS relationships, if there is one, with the place of its
/// name.
fn advise_on_cycle(topology: &Topology, file: Option<(PathBuf, usize)>, notes: &Notes<'_>) {
    let Some(cycle) = topology.provider_cycle() else {
        return;
    };
    let count = cycle.routers.len();
    let named = cycle.routers.iter().take(NAMED_MAX);
    let mut names: Vec<String> = named
        .map(|router| format!("AS{}", topology.routers[*router as usize].asn))
        .collect();
    if count > NAMED_MAX {
        names.push(format!("{} more", count - NAMED_MAX));
    }
    names.push(names[0].clone());
    let message = format!(
        "closes a cycle of {count} providers: {}, each a provider of the next; BGP may not converge with such a cycle",
        names.join(", ")
    );
    match (file, cycle.line) {
        (Some((path, at)), Some(line)) => {
            let message = format!("{}: line {line} {message}", path.display());
            notes.advise(at, "topology.file", message);
        }
        _ => notes.advise(0, "link.relation", message),
    }
}

/// Reads the keys for a router's behaviour.
fn behaviour(section: &mut Section<'_>, settings: &mut RouterSettings) {
    if let Some(hold) = section.integer("hold_time_s", 0..=65_535, "seconds") {
        if matches!(hold.value, 1 | 2) {
            let message = "must be 0 or at least 3 (RFC 4271 section 4.2)";
            section.fault(hold.at, "hold_time_s", message);
        }
        settings.hold_time_s = hold.value as u16;
    }
    if let Some(keepalive) = section.integer("keepalive_s", 1..=65_535, "seconds") {
        settings.keepalive_s = Some(keepalive.value as u16);
    }
    set(
        section.seconds("mrai_s", 0.0..=INTERVAL_S_MAX),
        &mut settings.advertisement_interval,
    );
    set(
        section.seconds("connect_retry_s", 0.1..=INTERVAL_S_MAX),
        &mut settings.connect_retry,
    );
    if let Some(port) = section.integer("port", 1..=65_535, "") {
        settings.port = port.value as u16;
    }
    set(section.flag("ipv6"), &mut settings.ipv6);
    set(section.flag("originate"), &mut settings.originates);
    set(
        section.flag("enforce_first_as"),
        &mut settings.enforces_first_as,
    );
}

/// Reads the keys for a link's behaviour.
fn carriage(section: &mut Section<'_>, settings: &mut LinkSettings) {
    set(
        section.milliseconds("delay_ms", 0.001..=DELAY_MS_MAX),
        &mut settings.delay,
    );
    set(
        section.milliseconds("jitter_ms", 0.0..=DELAY_MS_MAX),
        &mut settings.jitter,
    );
    if let Some(rate) = section.number("rate_mbps", 0.0..=1e6, "") {
        settings.rate_octets_s = (rate.value * 125_000.0) as u64;
    }
    set(
        section.seconds("mean_life_s", 0.0..=1e9),
        &mut settings.mean_life,
    );
    let transports = [("memory", Transport::Memory), ("tcp", Transport::Tcp)];
    set(
        section.choice("transport", &transports),
        &mut settings.transport,
    );
    let detections = [
        ("at_once", Detection::AtOnce),
        ("hold_timer", Detection::HoldTimer),
    ];
    set(
        section.choice("detection", &detections),
        &mut settings.detection,
    );
}

/// Reads one `[[router]]`: it adds a router, or changes the routers that its name matches.
fn one_router(
    mut section: Section<'_>,
    topology: &mut Topology,
    defaults: RouterSettings,
    told: &mut Told,
) {
    section.require("name", "write for example name = \"r1\"");
    let Some(name) = section.string("name") else {
        return;
    };
    let asn = section
        .integer("asn", 1..=i64::from(u32::MAX), "")
        .map(|asn| asn.value as u32);
    let address: Option<At<Ipv4Addr>> =
        section.from_text("address", "an IPv4 address", "192.0.2.1");
    let mut found = matching(topology, &name.value);
    if found.is_empty() {
        if name.value.contains('*') {
            let message = format!("no router's name is like \"{}\"", name.value);
            section.fault(name.at, "name", message);
            return;
        }
        let Some(asn) = asn else {
            section.require("asn", "this router is new: write for example asn = 65001");
            return;
        };
        let added = topology.add_router(name.value.clone(), asn, Tier::Flat, defaults);
        found.extend(added);
    }
    if found.len() > 1 && (address.is_some() || asn.is_some()) {
        let message = format!("{} routers cannot all have the same", found.len());
        section.fault(name.at, "name", message);
        return;
    }
    let mut probe = topology.routers[found[0] as usize].settings;
    let before = probe;
    behaviour(&mut section, &mut probe);
    set(section.flag("rov"), &mut probe.validates);
    set(section.flag("roles"), &mut probe.roles);
    set(section.flag("outside"), &mut probe.outside);
    for (key, list) in [("rov", &mut told.validating), ("roles", &mut told.roles)] {
        if section.has(key) {
            list.extend(&found);
        }
    }
    for &index in &found {
        let router = &mut topology.routers[index as usize];
        override_with(&mut router.settings, before, probe);
        if let Some(asn) = asn {
            router.asn = asn;
        }
        if let Some(address) = &address {
            router.address = address.value;
        }
    }
    section.finish();
}

/// Copies to `settings` every value that differs between `before` and `after`.
fn override_with(settings: &mut RouterSettings, before: RouterSettings, after: RouterSettings) {
    macro_rules! carry {
        ($($field:ident),*) => {$(
            if before.$field != after.$field {
                settings.$field = after.$field;
            }
        )*};
    }
    carry!(
        hold_time_s,
        keepalive_s,
        advertisement_interval,
        connect_retry,
        ipv6,
        originates,
        validates,
        roles,
        enforces_first_as,
        outside,
        port
    );
}

/// Reads one `[[link]]`: it adds a link, or changes the links between routers that its names match.
fn one_link(mut section: Section<'_>, topology: &mut Topology, defaults: LinkSettings) {
    let names = section.strings("between");
    let relations = [
        ("customer", Relation::Customer),
        ("provider", Relation::Provider),
        ("peer", Relation::Peer),
        ("open", Relation::Open),
    ];
    let relation = section.choice("relation", &relations);
    let Some([a, b]) = names.as_deref() else {
        let at = section.at();
        section.fault(
            at,
            "between",
            "must name two routers, as in between = [\"r1\", \"r2\"]",
        );
        return;
    };
    let [left, right] = [a, b].map(|name| {
        let found = matching(topology, &name.value);
        if found.is_empty() {
            let message = format!("there is no router \"{}\"", name.value);
            section.fault(name.at, "between", message);
        }
        found
    });
    if left.is_empty() || right.is_empty() {
        return;
    }
    let exact = !a.value.contains('*') && !b.value.contains('*');
    if exact && topology.link_between(left[0], right[0]).is_none() {
        if left[0] == right[0] {
            section.fault(b.at, "between", "a router has no link to itself");
            return;
        }
        let mut settings = defaults;
        carriage(&mut section, &mut settings);
        topology.join(
            left[0],
            right[0],
            relation.map_or(Relation::Open, |r| r.value),
        );
        let index = topology.settings_index(settings);
        topology.links.last_mut().expect("it was added").settings = index;
    } else {
        let mut member = vec![[false; 2]; topology.routers.len()];
        left.iter()
            .for_each(|&index| member[index as usize][0] = true);
        right
            .iter()
            .for_each(|&index| member[index as usize][1] = true);
        let fits = |a: u32, b: u32| member[a as usize][0] && member[b as usize][1];
        change_links(&mut section, topology, relation.map(|r| r.value), fits);
    }
    section.finish();
}

/// Changes each link that `fits` matches in either direction.
fn change_links(
    section: &mut Section<'_>,
    topology: &mut Topology,
    relation: Option<Relation>,
    fits: impl Fn(u32, u32) -> bool,
) {
    // Links that share settings get the same changed settings, so each kind of settings is changed once.
    let kinds = topology.link_settings.clone();
    let mut changed: Vec<Option<u16>> = vec![None; kinds.len()];
    let mut keys_read = false;
    for number in 0..topology.links.len() {
        let link = topology.links[number];
        let forward = fits(link.a, link.b);
        if !forward && !fits(link.b, link.a) {
            continue;
        }
        let kind = usize::from(link.settings);
        let index = changed[kind].unwrap_or_else(|| {
            let mut settings = kinds[kind];
            carriage(section, &mut settings);
            topology.settings_index(settings)
        });
        keys_read = true;
        changed[kind] = Some(index);
        let link = &mut topology.links[number];
        link.settings = index;
        if let Some(relation) = relation {
            link.relation = if forward {
                relation
            } else {
                relation.reversed()
            };
        }
    }
    if !keys_read {
        let at = section.at();
        section.fault(at, "between", "fits no link");
        carriage(section, &mut LinkSettings::DEFAULT.clone());
    }
}

/// Applies the shares of routers that validate and that have roles. Routers whose own section sets the key are skipped.
fn share_out(topology: &mut Topology, seed: u64, shares: Shares, told: &Told) {
    let routers = topology.routers.len();
    for index in share_of(routers, shares.validating, seed, "validating") {
        if !told.validating.contains(&index) {
            topology.routers[index as usize].settings.validates = true;
        }
    }
    for index in share_of(routers, shares.roles, seed, "roles") {
        if !told.roles.contains(&index) {
            topology.routers[index as usize].settings.roles = true;
        }
    }
}

/// A share of the numbers below `count`, drawn at random by the seed, in ascending order.
pub(super) fn share_of(count: usize, share: f64, seed: u64, what: &str) -> Vec<u32> {
    let mut all: Vec<u32> = (0..count as u32).collect();
    sim::Rng::stream(seed, &[what]).shuffle(&mut all);
    all.truncate((count as f64 * share).round() as usize);
    all.sort_unstable();
    all
}

/// Switches every link of a router outside the emulation to TCP.
fn settle(topology: &mut Topology) {
    for number in 0..topology.links.len() {
        let link = topology.links[number];
        let outside = |router: u32| topology.routers[router as usize].settings.outside;
        let settings = topology.settings_of(&link);
        if (outside(link.a) || outside(link.b)) && settings.transport == Transport::Memory {
            let index = topology.settings_index(LinkSettings {
                transport: Transport::Tcp,
                ..settings
            });
            topology.links[number].settings = index;
        }
    }
}

/// The routers whose names match `pattern`, in which `*` matches any characters.
fn matching(topology: &Topology, pattern: &str) -> Vec<u32> {
    if !pattern.contains('*') {
        return topology.find(pattern).into_iter().collect();
    }
    let routers = topology.routers.iter().enumerate();
    routers
        .filter(|(_, router)| fits(pattern, &router.name))
        .map(|(index, _)| index as u32)
        .collect()
}

/// Whether `name` matches `pattern`, in which `*` matches any characters.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}
