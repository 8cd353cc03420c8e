//! Writes tunnels and sessions as values, and the values that the endpoint has once.

use base::Redacted;
use base::slab::Key;
use base::snapshot::{Codec, Name, Part, Writer, names};

use super::Endpoint;
use crate::ids::{IdSequence, MAX_SESSIONS, MAX_TUNNELS, NarrowIds};
use crate::random::{Position, Random};
use crate::session::{Session, SessionKey};
use crate::snapshot::{SessionValue, TunnelValue, session, tunnel};
use crate::tunnel::TunnelKey;

/// The most spaces of 16-bit tunnel ids.
const SPACES_MAX: usize = 1 << 8;

/// The state that determines the next random numbers, ids and places of an endpoint. A successor that has it, and all
/// values, does what its predecessor would do. It is secret: it also determines the next cookies and challenges.
#[derive(Clone, Default)]
pub struct Generator {
    position: Position,
    spaces: Vec<IdSequence>,
    /// Places of tunnels and of sessions that are used next.
    tunnels: Vec<Place>,
    sessions: Vec<Place>,
}

/// A place of a table that is free.
#[derive(Clone, Default)]
struct Place(u32, u32);

impl Place {
    fn of(key: Key) -> Self {
        Self(key.index, key.generation)
    }

    fn key(&self) -> Key {
        let &Self(index, generation) = self;
        Key { index, generation }
    }
}

impl Part for Place {
    const NAME: &'static str = "place";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.number(1, "index", &mut self.0);
        codec.number(2, "generation", &mut self.1);
        if C::READS && self.0 >= MAX_TUNNELS.max(MAX_SESSIONS) {
            codec.refuse();
        }
    }
}

impl core::fmt::Debug for Generator {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Generator([redacted])")
    }
}

impl Part for Generator {
    const NAME: &'static str = "generator";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.part(1, "position", &mut self.position);
        codec.list(2, "spaces", &mut self.spaces, SPACES_MAX);
        codec.list(3, "tunnels", &mut self.tunnels, MAX_TUNNELS as usize);
        codec.list(4, "sessions", &mut self.sessions, MAX_SESSIONS as usize);
    }
}

/// The values that an endpoint has once.
#[derive(Default)]
pub(super) struct Once {
    /// The seed of the hash that recognises a repeated SCCRQ, and of the check values of secrets.
    pub(super) hash_seed: u64,
    pub(super) next_serial: u32,
}

impl Part for Once {
    const NAME: &'static str = "endpoint";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.number(1, "hash_seed", &mut self.hash_seed);
        codec.number(2, "next_serial", &mut self.next_serial);
    }
}

impl Endpoint {
    /// Writes the values that an endpoint has once. A successor reads them first, with [`Endpoint::restore`].
    pub fn snapshot(&self, writer: &mut Writer) {
        writer.write(&mut Once {
            hash_seed: self.hash_seed,
            next_serial: self.next_serial,
        });
    }

    /// Writes a tunnel and its queued messages; `false` if there is none. Closing and held tunnels are written too.
    ///
    /// The value does not have the tunnel's shared secret, see [`Endpoint::tunnel_secret`].
    pub fn tunnel_snapshot(&mut self, tunnel: TunnelKey, writer: &mut Writer) -> bool {
        let Self {
            tunnels,
            pool,
            keys,
            hash_seed,
            ..
        } = self;
        let Some(tunnel) = tunnels.get_mut(tunnel.0) else {
            return false;
        };
        let secret = keys.of(tunnel.keys).map(|keys| keys.check(*hash_seed));
        TunnelValue::with(tunnel, pool, secret, |value| writer.write(value));
        true
    }

    /// The shared secret of a tunnel, if it has one. If it is not one of the configuration, a successor needs it to
    /// restore the tunnel.
    #[must_use]
    pub fn tunnel_secret(&self, tunnel: TunnelKey) -> Option<Redacted<Vec<u8>>> {
        let keys = self.keys.of(self.tunnels.get(tunnel.0)?.keys)?;
        Some(Redacted::new(keys.secret.clone()))
    }

    /// Writes a session; `false` if there is none. The call's proxy AVPs are written too, passwords included.
    pub fn session_snapshot(&mut self, session: SessionKey, writer: &mut Writer) -> bool {
        let Self {
            tunnels, sessions, ..
        } = self;
        let Some(session) = sessions.get_mut(session.0) else {
            return false;
        };
        let tunnel = tunnels.at(session.tunnel);
        let tunnel = tunnel.expect("a session's tunnel is there").key;
        let due = session.timer.map(|(_, at)| at);
        writer.write(&mut SessionValue {
            session,
            tunnel,
            due,
        });
        true
    }

    /// The state that determines the next random numbers, ids and places.
    #[must_use]
    pub fn generator(&self) -> Generator {
        Generator {
            position: self.random.position(),
            spaces: self.narrow_ids.iter().map(|ids| ids.sequence()).collect(),
            tunnels: self.tunnels.vacant().map(Place::of).collect(),
            sessions: self.sessions.vacant().map(Place::of).collect(),
        }
    }

    /// Continues with the random numbers, ids and places of a predecessor. Its tunnels and sessions were restored before.
    pub fn set_generator(&mut self, generator: &Generator) {
        for (place, sequence) in generator.spaces.iter().enumerate() {
            if place == self.narrow_ids.len() {
                self.narrow_ids.push(NarrowIds::new(&mut self.random));
            }
            self.narrow_ids[place].follow(sequence.clone());
        }
        self.tunnels
            .set_vacant(generator.tunnels.iter().map(Place::key));
        self.sessions
            .set_vacant(generator.sessions.iter().map(Place::key));
        self.random = Random::at(&generator.position);
    }

    /// The names of all fields of the values, for messages about values of another version.
    #[must_use]
    pub fn snapshot_names() -> Vec<Name> {
        let mut all = names(&mut Once::default());
        all.extend(names(&mut Generator::default()));
        all.extend(names(&mut TunnelValue::new(&mut tunnel::blank())));
        let session: &mut Session = &mut session::blank();
        all.extend(names(&mut SessionValue::new(session)));
        all
    }
}
