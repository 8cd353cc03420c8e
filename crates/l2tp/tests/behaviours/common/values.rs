//! An endpoint as values, and an endpoint made of them.

use base::snapshot::{Reader, Timeline, Writer};
use base::{Duration, Instant, Redacted};
use l2tp::{Config, Endpoint, Generator, Refused, SessionKey, TunnelKey};

/// Another process began 77 s before the clock of these tests.
pub(crate) const TIMELINE: Timeline = Timeline::new(77_000_000_000);

/// All that an endpoint has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Values {
    pub(crate) once: Vec<u8>,
    pub(crate) tunnels: Vec<TunnelOctets>,
    pub(crate) sessions: Vec<Vec<u8>>,
}

/// A tunnel's octets, and its secret, which is not among them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TunnelOctets {
    pub(crate) octets: Vec<u8>,
    pub(crate) secret: Option<Redacted<Vec<u8>>>,
}

pub(crate) fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), TIMELINE);
    write(&mut writer);
    writer.into_octets()
}

/// Every tunnel, closing and held ones too, oldest first.
pub(crate) fn tunnels(endpoint: &Endpoint) -> Vec<TunnelKey> {
    let mut all: Vec<(Instant, TunnelKey)> = Vec::new();
    let mut from = 0;
    while let Some((place, view)) = endpoint.any_tunnel_from(from) {
        all.push((view.created, view.key));
        from = place + 1;
    }
    all.sort_by_key(|(created, _)| *created);
    all.into_iter().map(|(_, key)| key).collect()
}

/// Every session, oldest first.
pub(crate) fn sessions(endpoint: &Endpoint) -> Vec<SessionKey> {
    let mut all: Vec<(Instant, SessionKey)> = Vec::new();
    let mut from = 0;
    while let Some((next, view)) = endpoint.next_session(from) {
        all.push((view.created, view.key));
        from = next;
    }
    all.sort_by_key(|(created, _)| *created);
    all.into_iter().map(|(_, key)| key).collect()
}

/// All rows for `show`.
pub(crate) fn rows(endpoint: &Endpoint) -> Vec<String> {
    let tunnels = tunnels(endpoint).into_iter();
    let tunnels = tunnels.map(|key| format!("{:?}", endpoint.tunnel(key)));
    let sessions = sessions(endpoint).into_iter();
    let sessions = sessions.map(|key| format!("{:?}", endpoint.session(key)));
    tunnels.chain(sessions).collect()
}

/// Whether the time of its creation tells the age of each tunnel and session, so that lists get their order again.
pub(crate) fn has_an_order(endpoint: &Endpoint) -> bool {
    let tunnels = tunnels(endpoint).into_iter();
    let tunnels: Vec<Instant> = tunnels
        .filter_map(|key| Some(whole_ms(endpoint.tunnel(key)?.created)))
        .collect();
    let sessions = sessions(endpoint).into_iter();
    let sessions: Vec<Instant> = sessions
        .filter_map(|key| Some(whole_ms(endpoint.session(key)?.created)))
        .collect();
    [tunnels, sessions]
        .iter()
        .all(|list| list.is_sorted_by(|a, b| a < b))
}

pub(crate) fn tunnel_octets(endpoint: &mut Endpoint, key: TunnelKey) -> Vec<u8> {
    written(|writer| assert!(endpoint.tunnel_snapshot(key, writer)))
}

pub(crate) fn session_octets(endpoint: &mut Endpoint, key: SessionKey) -> Vec<u8> {
    written(|writer| assert!(endpoint.session_snapshot(key, writer)))
}

impl Values {
    pub(crate) fn of(endpoint: &mut Endpoint) -> Self {
        let tunnels = tunnels(endpoint).into_iter().map(|key| TunnelOctets {
            octets: tunnel_octets(endpoint, key),
            secret: endpoint.tunnel_secret(key),
        });
        let tunnels = tunnels.collect();
        let sessions = sessions(endpoint);
        let sessions = sessions
            .into_iter()
            .map(|key| session_octets(endpoint, key));
        let sessions = sessions.collect();
        Self {
            once: written(|writer| endpoint.snapshot(writer)),
            tunnels,
            sessions,
        }
    }

    /// An endpoint with these values.
    #[track_caller]
    pub(crate) fn restore(&self, config: Config) -> Endpoint {
        self.restore_into(Endpoint::new(config, [200; 32]))
    }

    /// The same of an endpoint that is new.
    #[track_caller]
    pub(crate) fn restore_into(&self, mut endpoint: Endpoint) -> Endpoint {
        let once = endpoint.restore(&mut Reader::new(&self.once, TIMELINE));
        assert_eq!(once, Ok(()));
        for one in &self.tunnels {
            let key = restore_tunnel(&mut endpoint, &one.octets, one.secret.as_ref());
            assert!(key.is_ok(), "{key:?}: {one:?}");
        }
        for octets in &self.sessions {
            let key = restore_session(&mut endpoint, octets);
            assert!(key.is_ok(), "{key:?}: {octets:?}");
        }
        endpoint
    }
}

/// What was read would be written with the same octets.
pub(crate) fn restore_tunnel(
    endpoint: &mut Endpoint,
    octets: &[u8],
    secret: Option<&Redacted<Vec<u8>>>,
) -> Result<TunnelKey, Refused> {
    let mut reader = Reader::new(octets, TIMELINE);
    let restored = endpoint.restore_tunnel(&mut reader, secret);
    if let Ok(key) = restored {
        let read = &octets[..octets.len() - reader.rest().len()];
        assert_eq!(tunnel_octets(endpoint, key), read);
    }
    restored
}

/// What was read would be written with the same octets.
pub(crate) fn restore_session(
    endpoint: &mut Endpoint,
    octets: &[u8],
) -> Result<SessionKey, Refused> {
    let mut reader = Reader::new(octets, TIMELINE);
    let restored = endpoint.restore_session(&mut reader);
    if let Ok(key) = restored {
        let read = &octets[..octets.len() - reader.rest().len()];
        assert_eq!(session_octets(endpoint, key), read);
    }
    restored
}

/// A copy of an endpoint, made of its values and its generator. Both have the same values and the same counts.
#[track_caller]
pub(crate) fn copy(endpoint: &mut Endpoint) -> Endpoint {
    let values = Values::of(endpoint);
    let mut copy = values.restore(endpoint.config().clone());
    assert_eq!(Values::of(&mut copy), values);
    assert_eq!(copy.counts(), endpoint.counts());
    let octets = written(|writer| writer.write(&mut endpoint.generator()));
    let generator: Generator = Reader::read(&octets, TIMELINE).expect("it was written");
    copy.set_generator(&generator);
    assert_eq!(
        written(|writer| writer.write(&mut copy.generator())),
        octets
    );
    copy
}

/// A moment in whole milliseconds, as values have them.
pub(crate) fn whole_ms(now: Instant) -> Instant {
    Instant::ZERO + Duration::from_millis(now.as_nanos() / 1_000_000)
}
