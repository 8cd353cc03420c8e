//! From text to users, section by section: what one section takes to read is given back before the next.

use core::hash::BuildHasher;
use core::net::{IpAddr, Ipv4Addr};
use core::num::NonZeroU16;
use core::ops::RangeInclusive;

use base::{Duration, Redacted, nearest};
use foldhash::fast::FixedState;
use hashbrown::hash_map::Entry as Slot;
use hashbrown::{HashMap, HashTable};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::Fault;
use super::syntax::{Explained, explain};
use super::{Entry, NAME_OCTETS_MAX, PASSWORD_OCTETS_MAX, ROUTES_MAX, Terms, USERS_MAX, Users};
use crate::profile::{Address, Prefix};

/// Faults that are told; more are of no help.
const FAULTS_MAX: usize = 100;
/// Keys of a user, for the one that was meant.
const KEYS: [&str; 11] = [
    "name",
    "password",
    "address",
    "pool",
    "routes",
    "filter",
    "session_timeout_s",
    "idle_timeout_s",
    "interim_interval_s",
    "sessions",
    "sticky",
];

/// What is wrong with a value, and what would be right.
type Wrong = (String, &'static str);

/// Reads a file.
///
/// # Errors
/// Its faults in the order of the text.
pub(super) fn read(text: &str) -> Result<Users, Vec<Fault>> {
    let mut reader = Reader::default();
    let mut line = 1;
    for section in Sections(text) {
        reader.section(section, line);
        if reader.faults.len() >= FAULTS_MAX {
            break;
        }
        line += section.matches('\n').count();
    }
    reader.finish()
}

/// A text cut before each line that begins with a bracket: the head, then one section each.
struct Sections<'t>(&'t str);

impl<'t> Iterator for Sections<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if self.0.is_empty() {
            return None;
        }
        let mut from = 0;
        let end = loop {
            let Some(newline) = self.0[from..].find('\n') else {
                break self.0.len();
            };
            from += newline + 1;
            let line = self.0[from..].trim_start_matches([' ', '\t']);
            if line.starts_with('[') {
                break from;
            }
        };
        let (section, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(section)
    }
}

#[derive(Default)]
struct Reader {
    texts: Vec<u8>,
    entries: Vec<Entry>,
    /// The line of each user, for who repeats it.
    lines: Vec<usize>,
    terms: HashMap<Terms, u32, FixedState>,
    routes: Vec<Prefix>,
    by_name: HashTable<u32>,
    hasher: FixedState,
    /// Users with a fixed address.
    fixed: HashMap<Ipv4Addr, u32, FixedState>,
    /// Sections seen, those with faults included.
    count: usize,
    faults: Vec<Fault>,
}

/// A user while its keys are read, and the place of each that may be at fault later.
#[derive(Default)]
struct Draft {
    name: Option<(Box<str>, usize)>,
    password: Option<Redacted<Box<str>>>,
    address: Address,
    address_at: usize,
    pool_at: Option<usize>,
    routes: Vec<Prefix>,
    terms: Terms,
}

impl Reader {
    /// Reads one section, whose first line is `line`.
    fn section(&mut self, text: &str, line: usize) {
        let (root, errors) = DeTable::parse_recoverable(text);
        let section = Section { text, line };
        let user = text.trim_start().starts_with("[[user]]");
        let ordinal = self.count + usize::from(user);
        for error in &errors {
            let at = error.span().map_or(0, |span| span.start);
            let Explained {
                key,
                message,
                right,
            } = explain(text, at, error.message());
            let key = key.map_or_else(String::new, |key| match user {
                true => format!("user[{ordinal}].{key}"),
                false => key,
            });
            self.fault(section.line_of(at), key, message, &right);
        }
        if !errors.is_empty() {
            self.count = ordinal;
            return;
        }
        for (key, value) in root.get_ref().iter() {
            let at = key.span().start;
            let name: &str = key.get_ref();
            let table = match value.get_ref() {
                DeValue::Array(items) if name == "user" && items.len() == 1 => {
                    items[0].get_ref().as_table()
                }
                _ => None,
            };
            match table {
                Some(table) => self.user(table, &section),
                None => {
                    let (message, right) = match name {
                        "user" => (
                            "is not written as a list of users",
                            "begin each user with [[user]]",
                        ),
                        _ => ("is no section of a users file", "there is [[user]] alone"),
                    };
                    self.fault(
                        section.line_of(at),
                        name.to_owned(),
                        message.to_owned(),
                        right,
                    );
                }
            }
        }
    }

    fn user(&mut self, table: &DeTable<'_>, section: &Section<'_>) {
        self.count += 1;
        let before = self.faults.len();
        let mut draft = Draft::default();
        for (key, value) in table.iter() {
            let name: &str = key.get_ref();
            let at = value.span().start;
            if let Err((message, right)) = draft.take(name, value) {
                let right = match right {
                    "" => known_keys(name),
                    right => right.to_owned(),
                };
                let at = if KEYS.contains(&name) {
                    at
                } else {
                    key.span().start
                };
                self.fault_of(section.line_of(at), name, message, &right);
            }
        }
        if let Some(at) = draft
            .pool_at
            .filter(|_| matches!(draft.address, Address::Fixed(_)))
        {
            let message = "is given beside a fixed address".to_owned();
            self.fault_of(section.line_of(at), "pool", message, "give one of the two");
        }
        if !table.contains_key("name") {
            let message = "is missing".to_owned();
            self.fault_of(section.line, "name", message, "write name = \"NAME\"");
        }
        if !table.contains_key("password") {
            let message = "is missing".to_owned();
            let right = "write password = \"PASSWORD\"";
            self.fault_of(section.line, "password", message, right);
        }
        if self.faults.len() == before {
            self.add(draft, section);
        }
    }

    /// Takes a user in, unless another has its name or its address.
    fn add(&mut self, draft: Draft, section: &Section<'_>) {
        let (Some((name, name_at)), Some(password)) = (draft.name, draft.password) else {
            return;
        };
        let place = self.entries.len() as u32;
        let hash = self.hasher.hash_one(name.as_bytes());
        let is_its = |&place: &u32| name_of(&self.texts, &self.entries, place) == name.as_bytes();
        if let Some(&other) = self.by_name.find(hash, is_its) {
            let message = format!("is the name of the user of line {}", self.line_of(other));
            let line = section.line_of(name_at);
            self.fault_of(line, "name", message, "give each user its own");
            return;
        }
        if let Address::Fixed(address) = draft.address {
            match self.fixed.entry(address) {
                Slot::Occupied(other) => {
                    let other = *other.get();
                    let message = format!(
                        "{address} is the address of the user of line {}",
                        self.line_of(other)
                    );
                    let line = section.line_of(draft.address_at);
                    self.fault_of(line, "address", message, "give each user its own");
                    return;
                }
                Slot::Vacant(slot) => {
                    slot.insert(place);
                }
            }
        }
        if self.entries.len() >= USERS_MAX {
            let message = format!("is the user beyond {USERS_MAX}");
            self.fault_of(section.line, "name", message, "serve more from RADIUS");
            return;
        }
        let next = self.terms.len() as u32;
        let terms = *self.terms.entry(draft.terms).or_insert(next);
        let password = password.reveal();
        self.entries.push(Entry {
            text: self.texts.len() as u32,
            routes: self.routes.len() as u32,
            terms,
            address: draft.address,
            name_len: name.len() as u8,
            password_len: password.len() as u8,
            routes_len: draft.routes.len() as u8,
        });
        self.lines.push(section.line);
        self.texts.extend(name.bytes());
        self.texts.extend(password.bytes());
        self.routes.extend(draft.routes);
        let (texts, entries, hasher) = (&self.texts, &self.entries, &self.hasher);
        self.by_name.insert_unique(hash, place, |&place| {
            hasher.hash_one(name_of(texts, entries, place))
        });
    }

    fn line_of(&self, place: u32) -> usize {
        self.lines[place as usize]
    }

    /// A fault of the user that is read.
    fn fault_of(&mut self, line: usize, key: &str, message: String, right: &str) {
        self.fault(line, format!("user[{}].{key}", self.count), message, right);
    }

    fn fault(&mut self, line: usize, key: String, message: String, right: &str) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Fault {
                line,
                key,
                message,
                right: right.to_owned(),
            });
        }
    }

    fn finish(mut self) -> Result<Users, Vec<Fault>> {
        if !self.faults.is_empty() {
            self.faults.sort_by_key(|fault| fault.line);
            return Err(self.faults);
        }
        let mut terms: Vec<(Terms, u32)> = self.terms.into_iter().collect();
        terms.sort_by_key(|(_, place)| *place);
        Ok(Users {
            texts: Redacted::new(self.texts.into()),
            entries: self.entries.into(),
            terms: terms.into_iter().map(|(terms, _)| terms).collect(),
            routes: self.routes.into(),
            by_name: self.by_name,
            hasher: self.hasher,
        })
    }
}

/// A section of the text, for the lines of what is in it.
struct Section<'t> {
    text: &'t str,
    line: usize,
}

impl Section<'_> {
    fn line_of(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        self.line + before.iter().filter(|&&octet| octet == b'\n').count()
    }
}

impl Draft {
    /// Takes the value of a key.
    ///
    /// # Errors
    /// What is wrong with it; an unknown key has no remedy here.
    fn take(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<(), Wrong> {
        let at = value.span().start;
        let value = value.get_ref();
        match key {
            "name" => {
                let name = text(value, NAME_OCTETS_MAX)?;
                self.name = Some((name.into(), at));
            }
            "password" => {
                let password = text(value, PASSWORD_OCTETS_MAX)?;
                self.password = Some(Redacted::new(password.into()));
            }
            "address" => (self.address, self.address_at) = (address(value)?, at),
            "pool" => {
                self.terms.pool = Some(text(value, NAME_OCTETS_MAX)?.into());
                self.pool_at = Some(at);
            }
            "routes" => self.routes = routes(value)?,
            "filter" => self.terms.filter = Some(text(value, NAME_OCTETS_MAX)?.into()),
            "session_timeout_s" => self.terms.session_timeout = Some(seconds(value, 1)?),
            "idle_timeout_s" => self.terms.idle_timeout = Some(seconds(value, 1)?),
            // RFC 2869, section 2.1: it must not be smaller than 60.
            "interim_interval_s" => self.terms.interim_interval = Some(seconds(value, 60)?),
            "sessions" => {
                let number = integer(value, 1..=u32::from(u16::MAX)).ok_or_else(|| {
                    let message = format!("is not {} from 1 to 65535", a_number(value));
                    (
                        message,
                        "write sessions = 1, or leave it out for any number",
                    )
                })?;
                self.terms.sessions = NonZeroU16::new(number as u16);
            }
            "sticky" => {
                self.terms.sticky = value.as_bool().ok_or_else(|| {
                    let message = format!("is {}", describe(value));
                    (message, "write true or false, without quotes")
                })?;
            }
            _ => return Err(("is no key of a user".to_owned(), "")),
        }
        Ok(())
    }
}

fn text<'v>(value: &'v DeValue<'_>, octets_max: usize) -> Result<&'v str, Wrong> {
    let text = value.as_str().ok_or_else(|| {
        let message = format!("is {}", describe(value));
        (message, "write text in quotes")
    })?;
    match text.len() {
        0 => Err(("is empty".to_owned(), "give it, or leave the key out")),
        len if len <= octets_max => Ok(text),
        len => {
            let message = format!("has {len} octets");
            let right = match octets_max {
                NAME_OCTETS_MAX => "it may have 253",
                _ => "it may have 255",
            };
            Err((message, right))
        }
    }
}

fn address(value: &DeValue<'_>) -> Result<Address, Wrong> {
    let right = "write \"pool\", \"own\", or an address such as \"192.0.2.7\"";
    match value.as_str() {
        Some("pool") => Ok(Address::FromPool),
        Some("own") => Ok(Address::ItsOwn),
        Some(text) => match text.parse::<Ipv4Addr>() {
            Ok(address) if crate::pools::is_host(address) => Ok(Address::Fixed(address)),
            Ok(address) => Err((format!("{address} is no host's address"), right)),
            Err(_) => Err(("is no IPv4 address".to_owned(), right)),
        },
        None => Err((format!("is {}", describe(value)), right)),
    }
}

fn routes(value: &DeValue<'_>) -> Result<Vec<Prefix>, Wrong> {
    let right = "write networks in a list: routes = [\"192.0.2.0/24\", \"2001:db8::/48\"]";
    let items = value
        .as_array()
        .ok_or_else(|| (format!("is {}", describe(value)), right))?;
    if items.len() > ROUTES_MAX {
        let message = format!("has {} networks", items.len());
        return Err((message, "a user may have 64"));
    }
    let mut routes = Vec::with_capacity(items.len());
    for item in items.iter() {
        let text = item.get_ref().as_str();
        let text = text.ok_or_else(|| (format!("has {}", describe(item.get_ref())), right))?;
        let route = route(text)?;
        if routes.contains(&route) {
            return Err((format!("has {route} twice"), "write each network once"));
        }
        routes.push(route);
    }
    Ok(routes)
}

fn route(text: &str) -> Result<Prefix, Wrong> {
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
        return Err(("has a text that is no network".to_owned(), right));
    };
    Prefix::new(address, length).ok_or_else(|| {
        let message =
            format!("has {address}/{length}, whose length is too long or leaves bits set");
        (message, right)
    })
}

fn seconds(value: &DeValue<'_>, least_s: u32) -> Result<Duration, Wrong> {
    let number = integer(value, least_s..=u32::MAX).ok_or_else(|| {
        let message = format!("is not {} of seconds, {least_s} or more", a_number(value));
        let right = match least_s {
            60 => "write whole seconds without quotes or unit, such as 600",
            _ => {
                "write whole seconds without quotes or unit, such as 3600, or leave it out for none"
            }
        };
        (message, right)
    })?;
    Ok(Duration::from_secs(u64::from(number)))
}

fn integer(value: &DeValue<'_>, range: RangeInclusive<u32>) -> Option<u32> {
    let number = value.as_integer()?;
    let number = u32::from_str_radix(number.as_str(), number.radix()).ok()?;
    range.contains(&number).then_some(number)
}

fn a_number(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::Integer(_) => "a number",
        _ => "a whole number",
    }
}

fn known_keys(name: &str) -> String {
    match nearest(name, &KEYS) {
        Some(right) => format!("did you mean {right}?"),
        None => format!("there are {}", KEYS.join(", ")),
    }
}

fn name_of<'t>(texts: &'t [u8], entries: &[Entry], place: u32) -> &'t [u8] {
    let entry = &entries[place as usize];
    &texts[entry.text as usize..][..usize::from(entry.name_len)]
}

fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}
