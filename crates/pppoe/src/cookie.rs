//! AC-Cookies: a PADI needs no state, and a PADR proves that its host received our PADO.
//!
//! A cookie is the time of the PADI and a keyed hash over that time and the host's route. So it is valid from one
//! port, MAC address and VLAN only, and for a limited time. Its time also tells a host's next request from a repeated
//! one.
//!
//! Implements parts of RFC 2516, section 9 and appendix A.

use base::{Duration, Instant};
use hmac::{Hmac, Mac as _};
use sha1::Sha1;

use crate::discard::Discard;
use crate::route::Route;

const STAMP_LEN: usize = 8;
const HASH_LEN: usize = 16;
/// Octets of a cookie.
pub(crate) const COOKIE_LEN: usize = STAMP_LEN + HASH_LEN;

/// The secret that cookies are made with.
pub(crate) struct Cookies {
    /// With the key already hashed in.
    keyed: Hmac<Sha1>,
}

impl Cookies {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self {
            keyed: Hmac::new_from_slice(&key).expect("HMAC takes keys of any length"),
        }
    }

    fn hash(&self, route: &Route, stamp: [u8; STAMP_LEN]) -> Hmac<Sha1> {
        let mut hash = self.keyed.clone();
        let mut text = [0; STAMP_LEN + 12];
        text[..8].copy_from_slice(&stamp);
        text[8..10].copy_from_slice(&route.port.to_be_bytes());
        text[10..16].copy_from_slice(&route.peer.0);
        text[16..].copy_from_slice(&route.vlans.bits().to_be_bytes());
        hash.update(&text);
        hash
    }

    /// The cookie for a PADI that arrived now.
    pub(crate) fn make(&self, route: &Route, now: Instant) -> [u8; COOKIE_LEN] {
        let stamp = now.as_nanos().to_be_bytes();
        let hash = self.hash(route, stamp).finalize().into_bytes();
        let mut cookie = [0; COOKIE_LEN];
        cookie[..STAMP_LEN].copy_from_slice(&stamp);
        cookie[STAMP_LEN..].copy_from_slice(&hash[..HASH_LEN]);
        cookie
    }

    /// The time in a cookie that we gave to this host, at most `lifetime` ago. The hash is compared in constant time.
    pub(crate) fn verify(
        &self,
        cookie: &[u8],
        route: &Route,
        lifetime: Duration,
        now: Instant,
    ) -> Result<u64, Discard> {
        let (stamp, hash) = cookie
            .split_first_chunk::<STAMP_LEN>()
            .filter(|(_, hash)| hash.len() == HASH_LEN)
            .ok_or(Discard::BadCookie)?;
        self.hash(route, *stamp)
            .verify_truncated_left(hash)
            .map_err(|_| Discard::BadCookie)?;
        let stamp = u64::from_be_bytes(*stamp);
        if now.since(Instant::from_nanos(stamp)) > lifetime {
            return Err(Discard::StaleCookie);
        }
        Ok(stamp)
    }
}

#[cfg(test)]
mod tests {
    use wire::pppoe::{Mac, Vlans};

    use super::*;

    const LIFETIME: Duration = Duration::from_secs(60);

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn a_cookie_belongs_to_one_route_one_secret_and_a_limited_time() {
        let cookies = Cookies::new([1; 32]);
        let route = Route {
            port: 1,
            peer: Mac([0, 0x53, 0, 0, 0, 1]),
            vlans: Vlans::two(10, 20),
        };
        let cookie = cookies.make(&route, at(100));
        let check = |cookies: &Cookies, cookie: &[u8], route: &Route, now| {
            cookies.verify(cookie, route, LIFETIME, now)
        };
        assert!(check(&cookies, &cookie, &route, at(100)).is_ok());
        assert!(check(&cookies, &cookie, &route, at(160)).is_ok());
        assert_eq!(
            check(&cookies, &cookie, &route, at(161)),
            Err(Discard::StaleCookie)
        );
        let others = [
            Route { port: 2, ..route },
            Route {
                peer: Mac([0, 0x53, 0, 0, 0, 2]),
                ..route
            },
            Route {
                vlans: Vlans::two(10, 21),
                ..route
            },
            Route {
                vlans: Vlans::one(10),
                ..route
            },
        ];
        for other in &others {
            let found = check(&cookies, &cookie, other, at(100));
            assert_eq!(found, Err(Discard::BadCookie), "{other}");
        }
        let secret = Cookies::new([2; 32]);
        assert!(check(&secret, &cookie, &route, at(100)).is_err());
        for place in 0..COOKIE_LEN {
            let mut forged = cookie;
            forged[place] ^= 1;
            assert!(check(&cookies, &forged, &route, at(100)).is_err());
            assert!(check(&cookies, &cookie[..place], &route, at(100)).is_err());
        }
        let long = [&cookie[..], &[0]].concat();
        assert!(check(&cookies, &long, &route, at(100)).is_err());
    }
}
