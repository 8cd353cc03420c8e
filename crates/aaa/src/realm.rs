//! Realms: the part of a user's name that says which provider it belongs to, and what is different for its users.
//!
//! A name is `user@realm` or `realm\user` (RFC 2865, section 5.1, and RFC 2759, section 4). Realms are compared without
//! regard to the case of ASCII letters. Start reading at [`split`].

use core::cmp::Ordering;

use crate::profile::Profile;

/// The most realms.
pub const REALMS_MAX: usize = 256;
/// The name of the realm of all names that no other realm has.
pub const DEFAULT: &str = "*";

/// How a subscriber proves itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Not at all.
    None,
    /// PAP (RFC 1334).
    Pap,
    /// CHAP with MD5 (RFC 1994).
    Chap,
    /// MS-CHAP version 2 (RFC 2759).
    MsChapV2,
    /// EAP (RFC 3748).
    Eap,
}

/// What is different for the users of a realm.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Realm {
    /// Its name; [`DEFAULT`] is that of all others.
    pub name: Box<str>,
    /// Whether users file and servers are asked for the name without the realm.
    pub strip: bool,
    /// The servers that are asked, as a bit set of their indexes; `None`: those that no realm names.
    pub servers: Option<u16>,
    /// The methods that its users may prove themselves by; empty: any.
    pub methods: Vec<Method>,
    /// The pool of users without one.
    pub pool: Option<Box<str>>,
    /// The filter of users without one.
    pub filter: Option<Box<str>>,
    /// Whether users whose source does not say it are kept apart from other subscribers.
    pub isolate: Option<bool>,
}

impl Realm {
    /// Whether its users may prove themselves by a method.
    #[must_use]
    pub fn allows(&self, method: Method) -> bool {
        self.methods.is_empty() || self.methods.contains(&method)
    }

    /// Gives a user the pool, the filter and the isolation that its source did not give.
    pub fn complete(&self, profile: &mut Profile) {
        if profile.pool.is_none() {
            profile.pool.clone_from(&self.pool);
        }
        if profile.filter.is_none() {
            profile.filter.clone_from(&self.filter);
        }
        profile.isolate = profile.isolate.or(self.isolate);
    }
}

/// A name without its realm, and the realm. The last `@` separates; without one, the first backslash does. An empty
/// realm is none.
#[must_use]
pub fn split(name: &[u8]) -> (&[u8], Option<&[u8]>) {
    let at = name.iter().rposition(|&octet| octet == b'@');
    let backslash = || name.iter().position(|&octet| octet == b'\\');
    let (user, realm) = match (at, backslash()) {
        (Some(at), _) => (&name[..at], &name[at + 1..]),
        (None, Some(at)) => (&name[at + 1..], &name[..at]),
        (None, None) => return (name, None),
    };
    match realm.is_empty() {
        true => (name, None),
        false => (user, Some(realm)),
    }
}

/// All realms.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Realms {
    /// In the order of their names.
    named: Box<[Realm]>,
    otherwise: Option<Realm>,
    /// The servers that some realm names.
    own_servers: u16,
}

impl Realms {
    /// A table of realms. Of two with the same name the first counts.
    #[must_use]
    pub fn new(realms: Vec<Realm>) -> Self {
        let named = |realm: &Realm| realm.servers.unwrap_or(0);
        let own_servers = realms.iter().map(named).fold(0, |all, one| all | one);
        let (mut default, mut named): (Vec<_>, Vec<_>) = realms
            .into_iter()
            .partition(|realm| &*realm.name == DEFAULT);
        named.sort_by(|a, b| compare(a.name.as_bytes(), b.name.as_bytes()));
        named.dedup_by(|b, a| compare(a.name.as_bytes(), b.name.as_bytes()).is_eq());
        Self {
            named: named.into(),
            otherwise: (!default.is_empty()).then(|| default.swap_remove(0)),
            own_servers,
        }
    }

    /// The realm of a name, and the name that users file and servers are asked for.
    #[must_use]
    pub fn find<'a>(&self, name: &'a [u8]) -> (Option<&Realm>, &'a [u8]) {
        let (user, realm) = split(name);
        let found = realm.and_then(|realm| {
            let place = (self.named).binary_search_by(|one| compare(one.name.as_bytes(), realm));
            self.named.get(place.ok()?)
        });
        let found = found.or(self.otherwise.as_ref());
        match found {
            Some(realm) if realm.strip => (found, user),
            _ => (found, name),
        }
    }

    /// The servers that users of a realm, or of none, are asked of.
    #[must_use]
    pub fn servers(&self, realm: Option<&Realm>) -> u16 {
        let own = realm.and_then(|realm| realm.servers);
        own.unwrap_or(!self.own_servers)
    }
}

/// Compares names without regard to the case of ASCII letters.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let a = a.iter().map(u8::to_ascii_lowercase);
    a.cmp(b.iter().map(u8::to_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_realm_behind_an_at_sign_or_before_a_backslash() {
        for (name, user, realm) in [
            ("ann@example.net", "ann", Some("example.net")),
            ("EXAMPLE\\ann", "ann", Some("EXAMPLE")),
            ("ann@home@example.net", "ann@home", Some("example.net")),
            ("corp\\ann@example.net", "corp\\ann", Some("example.net")),
            ("@example.net", "", Some("example.net")),
            ("ann", "ann", None),
            ("ann@", "ann@", None),
            ("\\ann", "\\ann", None),
            ("", "", None),
        ] {
            let expected = (user.as_bytes(), realm.map(str::as_bytes));
            assert_eq!(split(name.as_bytes()), expected, "{name}");
        }
    }

    fn realm(name: &str, strip: bool, servers: Option<u16>) -> Realm {
        Realm {
            name: name.into(),
            strip,
            servers,
            ..Realm::default()
        }
    }

    #[test]
    fn a_realm_is_found_whatever_the_case_and_others_are_the_default_s() {
        let realms = Realms::new(vec![
            realm("example.net", true, Some(0b10)),
            realm("*", false, None),
            realm("Corp", true, None),
        ]);
        let find = |name: &'static str| {
            let (realm, asked) = realms.find(name.as_bytes());
            let asked = core::str::from_utf8(asked).unwrap();
            (realm.map(|realm| &*realm.name), asked)
        };
        assert_eq!(find("ann@EXAMPLE.net"), (Some("example.net"), "ann"));
        assert_eq!(find("corp\\bob"), (Some("Corp"), "bob"));
        assert_eq!(find("ann@other"), (Some("*"), "ann@other"));
        assert_eq!(find("ann"), (Some("*"), "ann"));
        let servers = |name: &str| realms.servers(realms.find(name.as_bytes()).0);
        assert_eq!(servers("ann@example.net"), 0b10);
        // A server that a realm names is for that realm only.
        assert_eq!(servers("corp\\bob"), !0b10);
        assert_eq!(servers("ann"), !0b10);
        let none = Realms::default();
        assert_eq!(none.find(b"ann@x"), (None, &b"ann@x"[..]));
        assert_eq!(none.servers(None), u16::MAX);
    }

    #[test]
    fn a_realm_gives_what_the_source_did_not() {
        let realm = Realm {
            pool: Some("guests".into()),
            filter: Some("web".into()),
            methods: vec![Method::Eap],
            ..Realm::default()
        };
        let mut profile = Profile {
            filter: Some("own".into()),
            ..Profile::default()
        };
        realm.complete(&mut profile);
        assert_eq!(profile.pool.as_deref(), Some("guests"));
        assert_eq!(profile.filter.as_deref(), Some("own"));
        assert!(realm.allows(Method::Eap) && !realm.allows(Method::Pap));
        assert!(Realm::default().allows(Method::Pap));
    }
}
