//! Parses a users file section by section; the memory for one section is freed before the next.

use core::hash::BuildHasher;
use core::net::{IpAddr, Ipv4Addr};
use core::num::NonZeroU16;
use core::ops::Range;

use base::{Duration, Redacted, nearest};
use foldhash::fast::FixedState;
use hashbrown::hash_map::Entry as Slot;
use hashbrown::{HashMap, HashTable};
use settings::{At, Faults, Notes, Section};

use super::{
    Entry, Known, NAME_OCTETS_MAX, PASSWORD_OCTETS_MAX, ROUTES_MAX, Terms, USERS_MAX, Users,
};
use crate::profile::{Address, Prefix};
use crate::queue::{self, BitsPerSecond, Queue, Way};

/// Reads a file.
///
/// # Errors
/// Its faults in the order of the text.
pub(super) fn read(text: &str, known: Known<'_>) -> Result<Users, Faults> {
    let notes = Notes::with_secrets(text);
    let mut reader = Reader {
        known,
        ..Reader::default()
    };
    for range in (Sections { text, from: 0 }) {
        reader.section(range, &notes);
    }
    let users = notes.is_empty().then(|| reader.finish());
    notes.finish(users).map(|(users, _)| users)
}

/// A text split before each line that starts with a bracket: the head, then one section each.
struct Sections<'t> {
    text: &'t str,
    from: usize,
}

impl Iterator for Sections<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.from;
        if start == self.text.len() {
            return None;
        }
        while let Some(newline) = self.text[self.from..].find('\n') {
            self.from += newline + 1;
            let line = self.text[self.from..].trim_start_matches([' ', '\t']);
            if line.starts_with('[') {
                return Some(start..self.from);
            }
        }
        self.from = self.text.len();
        Some(start..self.from)
    }
}

#[derive(Default)]
struct Reader<'k> {
    known: Known<'k>,
    texts: Vec<u8>,
    entries: Vec<Entry>,
    /// The line of each user, for reporting duplicates.
    places: Vec<usize>,
    terms: HashMap<Terms, u32, FixedState>,
    routes: Vec<Prefix>,
    by_name: HashTable<u32>,
    hasher: FixedState,
    /// Users with a fixed address.
    fixed: HashMap<Ipv4Addr, u32, FixedState>,
    /// Sections seen, including faulty ones.
    count: usize,
}

/// A user while its keys are read, with the position of each value that a later check may reject.
struct Draft<'t> {
    name: At<&'t str>,
    password: &'t str,
    address: Option<At<Address>>,
    /// The prefix of its link, the delegated one, its IPv6 address.
    ipv6: [Option<Prefix>; 3],
    routes: Vec<Prefix>,
    terms: Terms,
}

impl Reader<'_> {
    /// Reads one section.
    fn section(&mut self, range: Range<usize>, notes: &Notes<'_>) {
        let (base, before) = (range.start, self.count);
        let is_user = notes
            .text(range.clone())
            .trim_start()
            .starts_with("[[user]]");
        self.count += usize::from(is_user);
        let Some(root) = settings::part(notes, range, before) else {
            return;
        };
        settings::only_sections(&root, base, &["user"], notes);
        let list = ("user", "user");
        for mut section in Section::each_of_part(&root, list, (base, before), notes) {
            if let Some(draft) = draft(&mut section, notes, self.known) {
                self.add(draft, &section);
            }
            section.finish();
        }
    }

    /// Adds a user, unless another user has its name or its address.
    fn add(&mut self, draft: Draft<'_>, section: &Section<'_>) {
        let (name, password) = (draft.name.value, draft.password);
        let place = self.entries.len() as u32;
        let hash = self.hasher.hash_one(name.as_bytes());
        let is_its = |&place: &u32| name_of(&self.texts, &self.entries, place) == name.as_bytes();
        if let Some(&other) = self.by_name.find(hash, is_its) {
            let line = section.line(self.places[other as usize]);
            let message = format!("is the name of the user of line {line}");
            section.fault(draft.name.at, "name", (message, "give each user its own"));
            return;
        }
        let address = draft
            .address
            .map_or(Address::default(), |address| address.value);
        if let (Address::Fixed(fixed), Some(At { at, .. })) = (address, draft.address) {
            match self.fixed.entry(fixed) {
                Slot::Occupied(other) => {
                    let line = section.line(self.places[*other.get() as usize]);
                    let message = format!("{fixed} is the address of the user of line {line}");
                    section.fault(at, "address", (message, "give each user its own"));
                    return;
                }
                Slot::Vacant(slot) => {
                    slot.insert(place);
                }
            }
        }
        if self.entries.len() >= USERS_MAX {
            let message = format!("is the user beyond {USERS_MAX}");
            section.fault(section.at(), "name", (message, "serve more from RADIUS"));
            return;
        }
        let next = self.terms.len() as u32;
        let terms = *self.terms.entry(draft.terms).or_insert(next);
        self.entries.push(Entry {
            text: self.texts.len() as u32,
            routes: self.routes.len() as u32,
            terms,
            address,
            name_len: name.len() as u8,
            password_len: password.len() as u8,
            routes_len: draft.routes.len() as u8,
            ipv6: (0..3).map(|n| u8::from(draft.ipv6[n].is_some()) << n).sum(),
        });
        self.places.push(section.at());
        self.texts.extend(name.bytes());
        self.texts.extend(password.bytes());
        self.routes.extend(draft.ipv6.into_iter().flatten());
        self.routes.extend(draft.routes);
        let (texts, entries, hasher) = (&self.texts, &self.entries, &self.hasher);
        self.by_name.insert_unique(hash, place, |&place| {
            hasher.hash_one(name_of(texts, entries, place))
        });
    }

    fn finish(self) -> Users {
        let mut terms: Vec<(Terms, u32)> = self.terms.into_iter().collect();
        terms.sort_by_key(|(_, place)| *place);
        Users {
            texts: Redacted::new(self.texts.into()),
            entries: self.entries.into(),
            terms: terms.into_iter().map(|(terms, _)| terms).collect(),
            routes: self.routes.into(),
            by_name: self.by_name,
            hasher: self.hasher,
        }
    }
}

/// Reads the keys of a user; `None` if it has a fault.
fn draft<'t>(section: &mut Section<'t>, notes: &Notes<'_>, known: Known<'_>) -> Option<Draft<'t>> {
    let before = notes.len();
    section.require("name", "write name = \"NAME\"");
    let name = section.sized("name", 1..=NAME_OCTETS_MAX);
    section.require("password", "write password = \"PASSWORD\"");
    let password = section.sized("password", 1..=PASSWORD_OCTETS_MAX);
    let address = section.parsed("address", address);
    let (ipv6, prefix_pools) = ipv6(section, known);
    let routes = routes(section);
    let queue = queue(section, known);
    let [pool, filter, garden, tunnel] = names(section, known);
    let times = [
        section.integer("session_timeout_s", 1..=SECONDS_MAX, "seconds"),
        section.integer("idle_timeout_s", 1..=SECONDS_MAX, "seconds"),
        // RFC 2869, section 2.1: it must not be smaller than 60.
        section.integer("interim_interval_s", 60..=SECONDS_MAX, "seconds"),
    ];
    let [session_timeout, idle_timeout, interim_interval] =
        times.map(|time| time.map(|time| Duration::from_secs(time.value as u64)));
    let sessions = section.integer("sessions", 1..=i64::from(u16::MAX), "");
    let sticky = section.flag("sticky");
    let isolate = section.flag("isolate");
    let is_fixed = address.is_some_and(|address| matches!(address.value, Address::Fixed(_)));
    if let Some(pool) = pool.filter(|_| is_fixed) {
        let words = "is given beside a fixed address; give one of the two";
        section.fault(pool.at, "pool", words);
    }
    let (name, password) = (name?, password?.value);
    (notes.len() == before).then(|| Draft {
        name,
        password,
        address,
        ipv6,
        routes,
        terms: Terms {
            pool: pool.map(|pool| pool.value.into()),
            prefix_pools,
            filter: filter.map(|filter| filter.value.into()),
            garden: garden.map(|garden| garden.value.into()),
            tunnel: tunnel.map(|tunnel| tunnel.value.into()),
            queue,
            session_timeout,
            idle_timeout,
            interim_interval,
            sessions: sessions.and_then(|sessions| NonZeroU16::new(sessions.value as u16)),
            sticky: sticky.is_some_and(|sticky| sticky.value),
            isolate: isolate.map(|isolate| isolate.value),
        },
    })
}

/// The names of a user's pool, filter, garden and tunnel.
fn names<'t>(section: &mut Section<'t>, known: Known<'_>) -> [Option<At<&'t str>>; 4] {
    let pool = section.sized("pool", 1..=NAME_OCTETS_MAX);
    let filter = section.sized("filter", 1..=NAME_OCTETS_MAX);
    let garden = section.sized("garden", 1..=queue::NAME_OCTETS_MAX);
    let tunnel = section.sized("tunnel", 1..=queue::NAME_OCTETS_MAX);
    for (key, named, known, remedy) in [
        ("pool", pool, known.pools, "give [[pool]] with that name"),
        (
            "filter",
            filter,
            known.filters,
            "give [filter] with a file that has it",
        ),
        (
            "garden",
            garden,
            known.gardens,
            "give [[garden]] with that name",
        ),
        (
            "tunnel",
            tunnel,
            known.tunnels,
            "give [[tunnel]] with that name",
        ),
    ] {
        if let (Some(named), Some(known)) = (named, known)
            && !known.contains(&named.value)
        {
            section.fault(named.at, key, unknown(key, named.value, known, remedy));
        }
    }
    [pool, filter, garden, tunnel]
}

/// A user's prefixes, by [`Draft::ipv6`], and its pools of link prefixes and of delegated prefixes.
type Prefixes = ([Option<Prefix>; 3], [Option<Box<str>>; 2]);

fn ipv6(section: &mut Section<'_>, known: Known<'_>) -> Prefixes {
    let prefixes = [
        section.parsed("ipv6_prefix", ipv6_prefix),
        section.parsed("delegated_prefix", ipv6_prefix),
        section.parsed("ipv6_address", ipv6_address),
    ];
    let pools = ["ipv6_pool", "delegated_pool"].map(|key| {
        let named = section.sized(key, 1..=NAME_OCTETS_MAX)?;
        if let Some(known) = known.prefix_pools
            && !known.contains(&named.value)
        {
            let remedy = "give [[prefix_pool]] with that name";
            section.fault(named.at, key, unknown("pool", named.value, known, remedy));
        }
        Some(named.value.into())
    });
    (prefixes.map(|one| one.map(|one| one.value)), pools)
}

/// Reads the rates, the template and the link of a user's queues.
fn queue(section: &mut Section<'_>, known: Known<'_>) -> Queue {
    let down = section.parsed("rate_down", queue::rate);
    let up = section.parsed("rate_up", queue::rate);
    let template = section.parsed("queue", queue::name);
    let link = section.parsed("link", queue::name);
    if let (Some(named), Some(known)) = (&template, known.templates)
        && !known.contains(&&*named.value)
    {
        let remedy = "give [[queue.template]] with that name";
        let words = unknown("template", &named.value, known, remedy);
        section.fault(named.at, "queue", words);
    }
    if let (Some(named), Some(known)) = (&link, known.links) {
        match known.iter().find(|(name, _)| *name == &*named.value) {
            Some((_, most)) => {
                let rates = [("rate_down", &down), ("rate_up", &up)];
                for (way, (key, rate)) in Way::ALL.into_iter().zip(rates) {
                    let Some(At { value, at }) = *rate else {
                        continue;
                    };
                    let most = most[way as usize];
                    if value > most {
                        let words = over_link(value, way, &named.value, most);
                        section.fault(at, key, words);
                    }
                }
            }
            None => {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                let remedy = "give [[queue.link]] with that name";
                let words = unknown("link", &named.value, &names, remedy);
                section.fault(named.at, "link", words);
            }
        }
    }
    Queue {
        rates_bps: [down, up].map(|rate| rate.map(|rate| rate.value)),
        link: link.map(|link| link.value),
        ..Queue::default().with_template(template.as_ref().map(|name| &*name.value))
    }
}

/// The words for a rate above that of the subscriber's link.
fn over_link(rate: u64, way: Way, link: &str, most: u64) -> (String, String) {
    let (rate, most) = (BitsPerSecond(rate), BitsPerSecond(most));
    let message = format!("{rate} is above the {most} that link \"{link}\" carries {way}");
    (message, format!("give {most} or less, or another link"))
}

/// The words for the name of a pool or filter that does not exist.
fn unknown(what: &str, name: &str, known: &[&str], remedy: &str) -> (String, String) {
    let right = match (nearest(name, known), known) {
        (Some(right), _) => format!("did you mean \"{right}\"?"),
        (None, []) => remedy.to_owned(),
        (None, all) => {
            let first = all.iter().take(NAMES_LISTED_MAX);
            let first: Vec<String> = first.map(|name| format!("\"{name}\"")).collect();
            let more = if all.len() > NAMES_LISTED_MAX {
                " and others"
            } else {
                ""
            };
            format!("there are {}{more}; {remedy}", first.join(", "))
        }
    };
    (format!("there is no {what} \"{name}\""), right)
}

/// Names of pools or filters that a fault lists.
const NAMES_LISTED_MAX: usize = 8;

/// Longest time of a user, in seconds: RADIUS attributes have 32 bits.
const SECONDS_MAX: i64 = u32::MAX as i64;

fn address(text: &str) -> Result<Address, (String, &'static str)> {
    let right = "write \"pool\", \"own\", or an address such as \"192.0.2.7\"";
    match text {
        "pool" => Ok(Address::FromPool),
        "own" => Ok(Address::ItsOwn),
        text => match text.parse::<Ipv4Addr>() {
            Ok(address) if crate::pools::is_host(address) => Ok(Address::Fixed(address)),
            Ok(address) => Err((format!("{address} is no host's address"), right)),
            Err(_) => Err(("is no IPv4 address".to_owned(), right)),
        },
    }
}

fn ipv6_prefix(text: &str) -> Result<Prefix, (String, &'static str)> {
    let right = "write an IPv6 network as \"2001:db8::/64\"";
    match route(text) {
        Ok(prefix) if prefix.address().is_ipv6() => Ok(prefix),
        Ok(prefix) => Err((format!("{prefix} is no IPv6 network"), right)),
        Err((message, _)) => Err((message, right)),
    }
}

fn ipv6_address(text: &str) -> Result<Prefix, (String, &'static str)> {
    let right = "write an IPv6 address as \"2001:db8::7\"";
    let address = text.parse::<core::net::Ipv6Addr>();
    let address = address.ok().filter(|one| !one.is_unspecified());
    let prefix = address.and_then(|one| Prefix::new(one.into(), 128));
    prefix.ok_or_else(|| ("is no IPv6 address".to_owned(), right))
}

fn routes(section: &mut Section<'_>) -> Vec<Prefix> {
    let mut routes: Vec<Prefix> = Vec::new();
    for At { value, at } in section.list_or_none("routes", "192.0.2.0/24", route) {
        if routes.contains(&value) {
            let words = format!("{value} is given twice; once is enough");
            section.fault(at, "routes", words);
        } else if routes.len() == ROUTES_MAX {
            let words = format!("has more than {ROUTES_MAX} networks; give fewer");
            section.fault(at, "routes", words);
            break;
        } else {
            routes.push(value);
        }
    }
    routes
}

fn route(text: &str) -> Result<Prefix, (String, &'static str)> {
    let right = "write a network as \"192.0.2.0/24\" or \"2001:db8::/48\"";
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address.parse(), length.parse().ok()),
        None => {
            let address = text.parse::<IpAddr>();
            let width = address.as_ref().map_or(32, |address| match address {
                IpAddr::V4(_) => 32,
                IpAddr::V6(_) => 128,
            });
            (address, Some(width))
        }
    };
    let (Ok(address), Some(length)) = (address, length) else {
        return Err(("is no network".to_owned(), right));
    };
    Prefix::new(address, length).ok_or_else(|| {
        let message =
            format!("{address}/{length} has a length that is too long or leaves bits set");
        (message, right)
    })
}

fn name_of<'t>(texts: &'t [u8], entries: &[Entry], place: u32) -> &'t [u8] {
    let entry = &entries[place as usize];
    &texts[entry.text as usize..][..usize::from(entry.name_len)]
}
