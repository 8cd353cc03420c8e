//! The rows of `show bgp ...`, some at a time.
#![allow(
    missing_docs,
    reason = "the variants and fields have the names of the requests and rows"
)]

use std::collections::BTreeMap;
use std::net::IpAddr;

use base::Instant;
use bgp::discard::Discard;
use bgp::event::What;
use bgp::rib::Cursor;
use bgp::{PeerId, Speaker};
use wire::bgp::{Families, FamilyId, Prefix};

use super::{find_peer, neighbor, past_peer, route};
use control::reply::{Code, Refusal, Rows};
use control::request::{BgpNeighbors, BgpRoutes};
use control::rows;

/// Places of a table that are looked at in one step.
const PLACES: u32 = 64;
/// Peers in one step.
const PEERS: usize = 16;

/// What is of no speaker's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aside {
    /// Networks that are announced.
    pub announced: Option<usize>,
    /// Routes in the kernel, and those that it refused.
    pub installed: Option<(usize, u64)>,
}

/// What is shown, and how far it is.
#[derive(Clone, Debug)]
pub enum BgpShow {
    Summary,
    /// A line for each peer.
    Peers(PeerId),
    /// A block for each.
    Details(PeerId),
    Detail(PeerId),
    /// The block of a dynamic peer that is gone.
    Past(IpAddr),
    /// Best routes of what lies in `within`, or all; or those of a peer.
    Routes {
        within: Option<Prefix>,
        from: Option<PeerId>,
        family: Option<FamilyId>,
        cursor: Cursor,
    },
    /// Routes advertised to a peer: all of them, those inside `within`, or only `within` itself if `is_exact`.
    Sent {
        peer: PeerId,
        within: Option<Prefix>,
        is_exact: bool,
        family: Option<FamilyId>,
        cursor: Cursor,
    },
    /// All about one prefix.
    Prefix(Prefix),
    Rib,
    Events(Option<IpAddr>),
    Holds(PeerId),
}

impl BgpShow {
    /// All peers, or one.
    pub fn neighbors(asked: &BgpNeighbors, speaker: &Speaker) -> Result<Self, Refusal> {
        match &asked.peer {
            Some(peer) => match (find_peer(speaker, peer), past_peer(speaker, peer)) {
                (Err(_), Some(past)) => Ok(Self::Past(past)),
                (found, _) => Ok(Self::Detail(found?)),
            },
            None => Ok(Self::Details(PeerId(0))),
        }
    }

    /// What happened, to all or to one.
    pub fn events(asked: &BgpNeighbors, speaker: &Speaker, now: Instant) -> Result<Self, Refusal> {
        let Some(peer) = &asked.peer else {
            return Ok(Self::Events(None));
        };
        // One that is gone is remembered by its address.
        if let Ok(address) = peer.parse::<IpAddr>() {
            return Ok(Self::Events(Some(address)));
        }
        let id = find_peer(speaker, peer)?;
        let view = speaker.neighbor(id, now);
        Ok(Self::Events(view.map(|view| view.remote)))
    }

    /// Routes.
    pub fn routes(asked: &BgpRoutes, speaker: &Speaker) -> Result<Self, Refusal> {
        let from = asked
            .received
            .as_ref()
            .map(|peer| find_peer(speaker, peer))
            .transpose()?;
        let within = asked.prefix.as_ref().map(|text| prefix(text)).transpose()?;
        let family = within.map_or(FamilyId::IN_FIELDS, Prefix::family);
        if let Some(peer) = &asked.advertised {
            return Ok(Self::Sent {
                peer: find_peer(speaker, peer)?,
                within,
                is_exact: !asked.longer,
                family: Some(family),
                cursor: Cursor::default(),
            });
        }
        if let Some(wanted) = within
            && !asked.longer
            && from.is_none()
        {
            let is_address = asked
                .prefix
                .as_ref()
                .is_some_and(|text| !text.contains('/'));
            if !is_address {
                let found = speaker.rib().routes(wanted).next();
                return found.map(|_| Self::Prefix(wanted)).ok_or_else(|| {
                    Refusal::new(Code::NotFound, format!("there is no route of {wanted}"))
                });
            }
            let found = speaker.rib().longest_match(wanted);
            return found.map(Self::Prefix).ok_or_else(|| {
                Refusal::new(
                    Code::NotFound,
                    format!("no route leads to {}", wanted.address()),
                )
            });
        }
        Ok(Self::Routes {
            within,
            from,
            family: Some(family),
            cursor: Cursor::default(),
        })
    }

    /// Writes some rows; what is left, if anything.
    pub fn step(
        self,
        speaker: &mut Speaker,
        aside: Aside,
        now: Instant,
        out: &mut Rows<'_>,
    ) -> Option<Self> {
        match self {
            Self::Summary => {
                summary(speaker, out);
                Some(Self::Peers(PeerId(0)))
            }
            Self::Peers(from) => each_peer(speaker, from, now, |view, speaker| {
                neighbor::line(view, speaker, now, out);
            })
            .map(Self::Peers),
            Self::Details(from) => each_peer(speaker, from, now, |view, speaker| {
                neighbor::detail(view, speaker, now, out);
            })
            .map(Self::Details),
            Self::Detail(peer) => {
                if let Some(view) = speaker.neighbor(peer, now) {
                    neighbor::detail(&view, speaker, now, out);
                }
                None
            }
            Self::Past(remote) => {
                if let Some(view) = speaker.past_neighbor(remote, now) {
                    neighbor::detail(&view, speaker, now, out);
                }
                None
            }
            Self::Holds(from) => each_peer(speaker, from, now, |view, _| {
                neighbor::hold(view, now, out);
            })
            .map(Self::Holds),
            Self::Prefix(prefix) => {
                route::paths(speaker, prefix, now, out);
                None
            }
            Self::Rib => {
                rib(speaker, aside, out);
                None
            }
            Self::Events(whose) => {
                events(speaker, whose, now, out);
                None
            }
            Self::Routes { .. } => self.walk(speaker, now, out),
            Self::Sent { .. } => self.walk_sent(speaker, out),
        }
    }

    fn walk(self, speaker: &Speaker, now: Instant, out: &mut Rows<'_>) -> Option<Self> {
        let Self::Routes {
            within,
            from,
            family,
            cursor,
        } = self
        else {
            return None;
        };
        let family = family?;
        let rib = speaker.rib();
        let next = rib.walk(family, cursor, PLACES, |prefix| {
            if within.is_none_or(|within| within.contains(prefix)) {
                route::lines(speaker, prefix, from, now, out);
            }
        });
        let (family, cursor) = match next {
            Some(cursor) => (Some(family), cursor),
            None => (
                family.next().filter(|_| within.is_none()),
                Cursor::default(),
            ),
        };
        family.is_some().then_some(Self::Routes {
            within,
            from,
            family,
            cursor,
        })
    }

    fn walk_sent(self, speaker: &mut Speaker, out: &mut Rows<'_>) -> Option<Self> {
        let Self::Sent {
            peer,
            within,
            is_exact,
            family,
            cursor,
        } = self
        else {
            return None;
        };
        let family = family?;
        let next = speaker.walk_sent(
            peer,
            family,
            cursor,
            PLACES,
            |nlri, attributes, next_hop| {
                let fits = |within: Prefix| match is_exact {
                    true => within == nlri.prefix,
                    false => within.contains(nlri.prefix),
                };
                if within.is_none_or(fits) {
                    route::sent(nlri, attributes, next_hop, out);
                }
            },
        );
        let (family, cursor) = match next {
            Some(cursor) => (Some(family), cursor),
            None => (
                family.next().filter(|_| within.is_none()),
                Cursor::default(),
            ),
        };
        family.is_some().then_some(Self::Sent {
            peer,
            within,
            is_exact,
            family,
            cursor,
        })
    }
}

/// A prefix, or an address as one.
fn prefix(text: &str) -> Result<Prefix, Refusal> {
    let address = text.parse::<IpAddr>();
    let parsed = match address {
        Ok(address) => Ok(Prefix::of(address, 128)),
        Err(_) => text.parse::<Prefix>(),
    };
    parsed.map_err(|_| {
        let message =
            format!("\"{text}\" is neither a prefix such as 198.51.100.0/24 nor an address");
        Refusal::new(Code::BadRequest, message)
    })
}

fn each_peer(
    speaker: &Speaker,
    mut from: PeerId,
    now: Instant,
    mut show: impl FnMut(&bgp::speaker::NeighborView, &Speaker),
) -> Option<PeerId> {
    for _ in 0..PEERS {
        let view = speaker.next_neighbor(from, now)?;
        show(&view, speaker);
        from = PeerId(view.id.0 + 1);
    }
    Some(from)
}

fn summary(speaker: &Speaker, out: &mut Rows<'_>) {
    let view = speaker.summary();
    let refused = Discard::ALL
        .into_iter()
        .map(|why| (why.name(), view.discards.get(why)));
    out.push(&rows::BgpSummary {
        schema: rows::BgpSummary::SCHEMA,
        router_id: view.router_id,
        asn: view.asn,
        peers: view.peers,
        dynamic: view.dynamic,
        held: view.held,
        established: view.established,
        connections: view.connections,
        refused: refused.filter(|(_, count)| *count > 0).collect(),
        events_lost: view.recent_events_dropped,
        prefixes: by_family(|family| speaker.rib().counts(family).0),
        deferring: view.deferring,
    });
}

/// A value for each family by its name.
pub(super) fn by_family<T>(mut value: impl FnMut(FamilyId) -> T) -> BTreeMap<&'static str, T> {
    let all = Families::ALL.iter();
    all.map(|family| (family.key(), value(family))).collect()
}

fn rib(speaker: &Speaker, aside: Aside, out: &mut Rows<'_>) {
    let rib = speaker.rib();
    let (memory, counters, sessions) = (rib.memory(), rib.counters(), speaker.memory());
    let parts = BTreeMap::from([
        ("tables", memory.tables),
        ("attributes", memory.attributes),
        ("paths", memory.paths),
        ("groups", memory.groups),
        ("peers", memory.peers + sessions.peers),
        ("connections", sessions.connections),
    ]);
    out.push(&rows::BgpRib {
        schema: rows::BgpRib::SCHEMA,
        prefixes: by_family(|family| rib.counts(family).0),
        routes: Families::ALL
            .iter()
            .map(|family| rib.counts(family).1)
            .sum(),
        attribute_sets: memory.attribute_sets,
        update_groups: memory.group_count,
        counted: BTreeMap::from([
            ("refused", counters.refused),
            ("too_long", counters.too_long),
            ("without_next_hop", counters.without_next_hop),
            ("detached", counters.detached),
        ]),
        memory_bytes: parts.values().sum(),
        memory: parts,
        announced: aside.announced,
        installed: aside.installed.map(|(routes, _)| routes),
        install_refused: aside.installed.map(|(_, refused)| refused),
    });
}

fn events(speaker: &Speaker, whose: Option<IpAddr>, now: Instant, out: &mut Rows<'_>) {
    for recent in speaker.recent_events().rev() {
        if whose.is_some_and(|whose| whose != recent.remote) {
            continue;
        }
        let (kind, what) = match &recent.what {
            What::State { from, to, event } => (
                "state",
                format!("{} to {}: {event}", from.name(), to.name()),
            ),
            What::Sent(notification) => ("sent", notification.to_string()),
            What::Received(notification) => ("received", notification.to_string()),
            What::Ended(reason) => ("ended", reason.to_string()),
            What::Malformed => (
                "malformed",
                "UPDATE; show bgp neighbors has its octets".into(),
            ),
            What::Refused(why) => ("refused", why.to_string()),
        };
        out.push(&rows::BgpEvent {
            schema: rows::BgpEvent::SCHEMA,
            s_ago: neighbor::seconds(now.since(recent.at)),
            peer: recent.remote,
            kind,
            what,
        });
    }
}
