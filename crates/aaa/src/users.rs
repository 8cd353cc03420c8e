//! Local users: one TOML file of `[[user]]` sections, and what a claim to be one of them is worth.
//!
//! PAP (RFC 1334, section 2) and CHAP with MD5 (RFC 1994). CHAP needs the password itself, so the file holds passwords in
//! clear; whoever reads it refuses a file that others may read. docs/users.md is the file's reference.
//!
//! ```text
//! let users = Users::parse(text)?;                       // all faults at once, each with line, column and key
//! match users.authenticate(name, &Proof::Pap(password)) {
//!     Verdict::Accept(grant) => …                         // address, pool, routes, filter, times, sessions
//!     Verdict::Reject(reject) => …                        // the reason is the operator's; the peer gets one answer
//! }
//! ```
//!
//! A user costs some 30 octets and its name and password; what users have in common is kept once.
//!
//! Left out: hashed passwords, which CHAP cannot use; MS-CHAP.

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

use crate::profile::{Address, Prefix, Profile};
pub use proof::Proof;

/// Users of a file.
pub const USERS_MAX: usize = 1 << 20;
/// Octets of a name, which is a RADIUS attribute in accounting (RFC 2865, section 5).
pub const NAME_OCTETS_MAX: usize = 253;
/// Octets of a password: what PAP carries (RFC 1334, section 2.2.1).
pub const PASSWORD_OCTETS_MAX: usize = 255;
/// Networks behind a user.
pub const ROUTES_MAX: usize = 64;

/// What becomes of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is that user.
    Accept(Grant),
    /// It is not, or there is no such user. The peer is told the same whatever the reason.
    Reject(Reject),
}

/// What a user gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What any subscriber gets.
    pub profile: Profile,
    /// Whether it is to get its last address back; a pool may do that for all.
    pub sticky: bool,
    /// How many sessions it may have at one time; `None`: any number.
    pub sessions: Option<NonZeroU16>,
}

/// Why a claim is refused, for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reject {
    /// No user has the name.
    #[error("unknown user")]
    UnknownUser,
    /// The password, or the response made with it, is another.
    #[error("wrong password")]
    WrongPassword,
    /// A response that is not as long as an MD5 digest.
    #[error("a CHAP response that is not of 16 octets")]
    ResponseLength,
    /// It claimed a name and proved nothing.
    #[error("no password given")]
    NoProof,
}

/// The users of one file.
pub struct Users {
    /// Names and passwords, one behind the other.
    texts: Redacted<Box<[u8]>>,
    entries: Box<[Entry]>,
    terms: Box<[Terms]>,
    routes: Box<[Prefix]>,
    /// Places in `entries` by name.
    by_name: HashTable<u32>,
    hasher: FixedState,
}

/// A user.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where its name begins in the texts; its password follows.
    text: u32,
    /// Where its networks begin.
    routes: u32,
    /// Which terms it has.
    terms: u32,
    address: Address,
    name_len: u8,
    password_len: u8,
    routes_len: u8,
}

/// What many users have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Terms {
    pool: Option<Box<str>>,
    filter: Option<Box<str>>,
    session_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    interim_interval: Option<Duration>,
    sessions: Option<NonZeroU16>,
    sticky: bool,
}

impl Users {
    /// Reads a users file.
    ///
    /// # Errors
    /// Its faults in the order of the text. No fault shows a password.
    pub fn parse(text: &str) -> Result<Self, settings::Faults> {
        read::read(text)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many get an address of a pool: those without a fixed one.
    #[must_use]
    pub fn of_pools(&self) -> usize {
        let fixed = |entry: &&Entry| matches!(entry.address, Address::Fixed(_));
        self.len() - self.entries.iter().filter(fixed).count()
    }

    /// Whether who claims to be `name` is that user. Names are compared octet by octet.
    ///
    /// It takes as long for a user that is not there as for one that is, and for a password that is nearly right as for
    /// any other.
    #[must_use]
    pub fn authenticate(&self, name: &[u8], proof: &Proof<'_>) -> Verdict {
        let found = self.find(name);
        let password = found.map_or(proof::DECOY, |entry| self.password(entry));
        let proven = proof.check(password);
        match (found, proven) {
            (None, _) => Verdict::Reject(Reject::UnknownUser),
            (Some(_), Err(reject)) => Verdict::Reject(reject),
            (Some(entry), Ok(())) => Verdict::Accept(self.grant(entry)),
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
        let routes = &self.routes[entry.routes as usize..][..usize::from(entry.routes_len)];
        Grant {
            profile: Profile {
                address: entry.address,
                pool: terms.pool.clone(),
                routes: routes.to_vec(),
                filter: terms.filter.clone(),
                session_timeout: terms.session_timeout,
                idle_timeout: terms.idle_timeout,
                interim_interval: terms.interim_interval,
                ..Profile::default()
            },
            sticky: terms.sticky,
            sessions: terms.sessions,
        }
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Users({})", self.entries.len())
    }
}
