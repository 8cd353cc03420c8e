//! Local users: one TOML file of `[[user]]` sections, and checking a peer's credentials against it.
//!
//! Supports PAP (RFC 1334, section 2), CHAP with MD5 (RFC 1994) and MS-CHAP version 2 (RFC 2759). CHAP needs the password
//! itself, so the file holds passwords in clear; the code that reads it refuses a file that other users may read. docs/users.md is
//! the file's reference. Start reading at [`Users`].
//!
//! ```text
//! let users = Users::parse(text)?;                       // all faults at once, each with line, column and key
//! match users.authenticate(name, &Proof::Pap(password)) {
//!     Verdict::Accept(grant) => …                         // address, pool, routes, filter, times, sessions
//!     Verdict::Reject(reject) => …                        // the reason is the operator's; the peer gets one answer
//! }
//! ```
//!
//! A user costs about 30 bytes plus its name and password; settings that users share are stored once.
//!
//! Left out: hashed passwords, which CHAP cannot use; EAP.

mod proof;
mod read;
#[cfg(test)]
mod tests;

use core::fmt;
use core::hash::BuildHasher;
use core::num::NonZeroU16;

use base::{Duration, Redacted};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use wire::ppp::mschap;

use crate::profile::{Address, Ipv6, Prefix, Profile};
use crate::queue::Queue;
use crate::tunnel::Tunnelled;
pub use proof::Proof;

/// The most users of a file.
pub const USERS_MAX: usize = 1 << 20;
/// The longest name in octets; it is a RADIUS attribute in accounting (RFC 2865, section 5).
pub const NAME_OCTETS_MAX: usize = 253;
/// The longest password in octets, as PAP can carry it (RFC 1334, section 2.2.1).
pub const PASSWORD_OCTETS_MAX: usize = 255;
/// The most networks routed to a user.
pub const ROUTES_MAX: usize = 64;

/// The result of checking a peer's credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The peer is that user.
    Accept(Box<Grant>),
    /// The peer is not that user, or there is no such user. The peer gets the same answer whatever the reason.
    Reject(Reject),
}

/// The settings for an authenticated user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The settings of any subscriber.
    pub profile: Profile,
    /// Whether the user gets its last address again; a pool may do that for all users.
    pub sticky: bool,
    /// How many concurrent sessions the user may have; `None`: unlimited.
    pub sessions: Option<NonZeroU16>,
    /// By MS-CHAP: our proof to the peer, with which the Success's message starts (RFC 2759, section 5).
    pub success: Option<[u8; mschap::SUCCESS]>,
}

/// Why credentials were rejected, for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reject {
    /// No user has that name.
    #[error("unknown user")]
    UnknownUser,
    /// The password, or the response computed with it, differs.
    #[error("wrong password")]
    WrongPassword,
    /// The response is not as long as an MD5 digest.
    #[error("a CHAP response that is not of 16 octets")]
    ResponseLength,
    /// The peer sent a name without credentials.
    #[error("no password given")]
    NoProof,
    /// The peer authenticates by EAP, for which a server is needed.
    #[error("EAP, for which there is no server")]
    Eap,
}

/// The users of one file.
pub struct Users {
    /// Names and passwords, concatenated.
    texts: Redacted<Box<[u8]>>,
    entries: Box<[Entry]>,
    terms: Box<[Terms]>,
    routes: Box<[Prefix]>,
    /// Indexes into `entries` by name.
    by_name: HashTable<u32>,
    hasher: FixedState,
}

/// A user.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Offset of its name in the texts; its password follows.
    text: u32,
    /// Index of its first network.
    routes: u32,
    /// Index of its settings.
    terms: u32,
    address: Address,
    name_len: u8,
    password_len: u8,
    routes_len: u8,
    /// Which of its IPv6 prefixes precede its networks: bit 0 the link's, bit 1 the delegated one, bit 2 its address.
    ipv6: u8,
}

/// Settings that many users share.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Terms {
    pool: Option<Box<str>>,
    /// The pools of link prefixes and of delegated prefixes.
    prefix_pools: [Option<Box<str>>; 2],
    filter: Option<Box<str>>,
    garden: Option<Box<str>>,
    tunnel: Option<Box<str>>,
    queue: Queue,
    session_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    interim_interval: Option<Duration>,
    sessions: Option<NonZeroU16>,
    sticky: bool,
    isolate: Option<bool>,
}

/// The pools, filters, gardens, templates and links that users may name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The names of all pools; `None` if they are not known, so that any is taken.
    pub pools: Option<&'a [&'a str]>,
    /// The names of all prefix pools; `None` if they are not known, so that any is taken.
    pub prefix_pools: Option<&'a [&'a str]>,
    /// The names of all filters; `None` if they are not known, so that any is taken.
    pub filters: Option<&'a [&'a str]>,
    /// The names of all walled gardens; `None` if they are not known, so that any is taken.
    pub gardens: Option<&'a [&'a str]>,
    /// The names of all tunnels; `None` if they are not known, so that any is taken.
    pub tunnels: Option<&'a [&'a str]>,
    /// The names of all templates of queues; `None` if they are not known, so that any is taken.
    pub templates: Option<&'a [&'a str]>,
    /// The names of all shared links, each with its rates down and up in bits per second; `None` if they are not known,
    /// so that any is taken.
    pub links: Option<&'a [(&'a str, [u64; 2])]>,
}

impl Users {
    /// Reads a users file, whose users may name any pool, filter, garden, template and link.
    ///
    /// # Errors
    /// The faults of the file, in the order of the text, up to a hundred. No fault contains a password.
    pub fn parse(text: &str) -> Result<Self, settings::Faults> {
        Self::parse_with(text, Known::default())
    }

    /// Reads a users file, whose users may name what is known.
    ///
    /// # Errors
    /// As for [`Users::parse`]; a pool, filter, garden, template or link that does not exist is one.
    pub fn parse_with(text: &str, known: Known<'_>) -> Result<Self, settings::Faults> {
        read::read(text, known)
    }

    /// The number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no users.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of users without a fixed address, which lease one from a pool.
    #[must_use]
    pub fn of_pools(&self) -> usize {
        let fixed = |entry: &&Entry| matches!(entry.address, Address::Fixed(_));
        self.len() - self.entries.iter().filter(fixed).count()
    }

    /// Checks whether a peer that claims to be `name` is that user. Names are compared byte by byte.
    ///
    /// Takes the same time for an unknown user as for a known one, and for a nearly right password as for any
    /// other.
    #[must_use]
    pub fn authenticate(&self, name: &[u8], proof: &Proof<'_>) -> Verdict {
        let found = self.find(name);
        let password = found.map_or(proof::DECOY, |entry| self.password(entry));
        let proven = proof.check(password);
        match (found, proven) {
            (None, _) => Verdict::Reject(Reject::UnknownUser),
            (Some(_), Err(reject)) => Verdict::Reject(reject),
            (Some(entry), Ok(success)) => Verdict::Accept(Box::new(Grant {
                success,
                ..self.grant(entry)
            })),
        }
    }

    fn find(&self, name: &[u8]) -> Option<&Entry> {
        let is_its = |&place: &u32| self.name(&self.entries[place as usize]) == name;
        let place = self.by_name.find(self.hasher.hash_one(name), is_its)?;
        self.entries.get(*place as usize)
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        let texts = self.texts.reveal();
        &texts[entry.text as usize..][..usize::from(entry.name_len)]
    }

    fn password(&self, entry: &Entry) -> &[u8] {
        let texts = self.texts.reveal();
        let start = entry.text as usize + usize::from(entry.name_len);
        &texts[start..][..usize::from(entry.password_len)]
    }

    fn grant(&self, entry: &Entry) -> Grant {
        let terms = &self.terms[entry.terms as usize];
        let prefixes = entry.ipv6.count_ones() as usize;
        let routes = &self.routes[entry.routes as usize + prefixes..];
        let routes = &routes[..usize::from(entry.routes_len)];
        Grant {
            profile: Profile {
                address: entry.address,
                pool: terms.pool.clone(),
                ipv6: self.ipv6(entry, terms),
                routes: routes.to_vec(),
                filter: terms.filter.clone(),
                garden: terms.garden.clone(),
                isolate: terms.isolate,
                queue: terms.queue.clone(),
                session_timeout: terms.session_timeout,
                idle_timeout: terms.idle_timeout,
                interim_interval: terms.interim_interval,
                tunnel: (terms.tunnel.clone()).map(|name| Box::new(Tunnelled::Named(name))),
                ..Profile::default()
            },
            sticky: terms.sticky,
            sessions: terms.sessions,
            success: None,
        }
    }
}

impl Users {
    /// The IPv6 prefixes and pools of a user, if it has any.
    fn ipv6(&self, entry: &Entry, terms: &Terms) -> Option<Box<Ipv6>> {
        let [pool, delegated_pool] = &terms.prefix_pools;
        if entry.ipv6 == 0 && pool.is_none() && delegated_pool.is_none() {
            return None;
        }
        let mut prefixes = self.routes[entry.routes as usize..].iter().copied();
        let [prefix, delegated, address] = [1, 2, 4].map(|bit| match entry.ipv6 & bit {
            0 => None,
            _ => prefixes.next(),
        });
        Some(Box::new(Ipv6 {
            prefix,
            delegated,
            address,
            pool: pool.clone(),
            delegated_pool: delegated_pool.clone(),
            ..Ipv6::default()
        }))
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Users({})", self.entries.len())
    }
}
