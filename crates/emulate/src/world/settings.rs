//! Settings of routers and their peers, and the policies that implement roles.
//!
//! With roles, a router prefers routes from customers to those from peers, and those to routes from
//! providers. It advertises only its own and its customers' routes to peers and providers (Gao and
//! Rexford, "Stable Internet Routing Without Global Coordination"). A community of the router's own
//! marks where a route came from; no other router sees it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use base::Duration;
use bgp::policy::{Policies, Policy, Roa, Roas, Spec, TermSpec, Then, compile};
use bgp::{PeerConfig, PeerSettings, RemoteAsn, SpeakerConfig};
use wire::bgp::{Families, Role};

use crate::scenario::Scenario;
use crate::topology::{Relation, RouterSettings, Topology, Transport};

/// The community that marks routes from customers.
const FROM_CUSTOMER: &str = "64512:1";
/// Number of recent events that each router keeps.
const RECENT_EVENTS_MAX: u32 = 16;
/// Local preference of routes from customers, peers and providers.
const PREFERENCES: [(&str, u32); 3] = [("customer", 300), ("peer", 200), ("provider", 100)];

/// The properties that determine a peer's settings.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    relation: u8,
    passive: bool,
    leaks: bool,
    router: (u16, Option<u16>, u64, u64),
    flags: [bool; 4],
}

/// The settings of peers; each distinct kind is stored once.
pub(super) struct Kinds {
    policies: Policies,
    made: HashMap<Kind, Arc<PeerSettings>>,
    roas: Arc<Roas>,
}

impl Kinds {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let roas = scenario.authorisations.iter().map(|given| Roa {
            prefix: given.prefix,
            len_max: given.length_max,
            asn: given.asn,
        });
        Self {
            policies: policies(),
            made: HashMap::new(),
            roas: Arc::new(roas.collect()),
        }
    }

    /// The configuration of a router and its neighbours.
    pub(super) fn config(
        &mut self,
        topology: &Topology,
        router: u32,
        near: &[(u32, u32)],
        leaks: bool,
    ) -> SpeakerConfig {
        let own = &topology.routers[router as usize];
        let mut config = SpeakerConfig::new(own.asn, own.address);
        config.roas = Arc::clone(&self.roas);
        config.limits.recent_events_max = Some(RECENT_EVENTS_MAX);
        config.peers.reserve_exact(near.len());
        for &(peer, link) in near {
            let other = &topology.routers[peer as usize];
            let mut settings = self.settings(topology, router, link, leaks);
            if other.settings.outside {
                // Daemons do not accept next hops in the loopback network.
                settings = Arc::new(PeerSettings {
                    next_hop_v4: Some(Topology::next_hop(router)),
                    ..(*settings).clone()
                });
            }
            let remote = IpAddr::V4(other.address);
            let mut peer = PeerConfig::new(remote, RemoteAsn::Exactly(other.asn), settings);
            let over = topology.settings_of(&topology.links[link as usize]);
            if over.transport == Transport::Tcp {
                peer.local = Some(IpAddr::V4(own.address));
                peer.port = other.settings.port;
            }
            config.peers.push(peer);
        }
        config
    }

    /// The settings of a router for the peer over `link`.
    fn settings(
        &mut self,
        topology: &Topology,
        router: u32,
        link: u32,
        leaks: bool,
    ) -> Arc<PeerSettings> {
        let ends = topology.links[link as usize];
        let own = topology.routers[router as usize].settings;
        // Of two routers in one process only one connects, so that their connections do not
        // collide.
        let dials = if (ends.a + ends.b).is_multiple_of(2) {
            ends.a
        } else {
            ends.b
        };
        let relation = if ends.a == router {
            ends.relation
        } else {
            ends.relation.reversed()
        };
        // A router outside may be passive, so both ends connect there, and one of two connections
        // survives.
        let is_outside = |of: u32| topology.routers[of as usize].settings.outside;
        let kind = Kind {
            relation: relation as u8,
            passive: dials != router && !is_outside(ends.a) && !is_outside(ends.b),
            leaks,
            router: (
                own.hold_time_s,
                own.keepalive_s,
                own.advertisement_interval.as_nanos(),
                own.connect_retry.as_nanos(),
            ),
            flags: [own.ipv6, own.validates, own.roles, own.enforces_first_as],
        };
        if let Some(made) = self.made.get(&kind) {
            return Arc::clone(made);
        }
        let settings = Arc::new(PeerSettings {
            passive: kind.passive,
            import: Some(self.policy("from", relation, own.validates)),
            export: Some(if leaks {
                self.policy("leak", Relation::Open, false)
            } else {
                self.policy("to", relation, false)
            }),
            ..plain(&own, relation)
        });
        self.made.insert(kind, Arc::clone(&settings));
        settings
    }

    fn policy(&self, what: &str, relation: Relation, validates: bool) -> Arc<Policy> {
        let whom = match relation {
            Relation::Customer => "customer",
            Relation::Provider => "provider",
            Relation::Peer => "peer",
            Relation::Open => "open",
        };
        let valid = if validates { "-valid" } else { "" };
        let name = format!("{what}-{whom}{valid}");
        self.policies
            .get(&name)
            .expect("every name is among those that were compiled")
    }
}

/// Settings without policies.
fn plain(own: &RouterSettings, relation: Relation) -> PeerSettings {
    let role = match relation {
        Relation::Customer => Some(Role::Provider),
        Relation::Provider => Some(Role::Customer),
        Relation::Peer => Some(Role::Peer),
        Relation::Open => None,
    };
    PeerSettings {
        hold_time_s: own.hold_time_s,
        hold_time_min_s: 0,
        keepalive_s: own.keepalive_s,
        connect_retry: own.connect_retry,
        idle_hold: Duration::from_secs(1),
        damp_oscillations: false,
        families: if own.ipv6 {
            Families::ALL
        } else {
            Families::IPV4
        },
        graceful_restart: None,
        role: role.filter(|_| own.roles),
        enforce_first_as: own.enforces_first_as,
        advertisement_interval: own.advertisement_interval,
        ..PeerSettings::default()
    }
}

/// All policies, by name.
fn policies() -> Policies {
    let one = |text: &str| vec![text.to_owned()];
    let accept = TermSpec {
        then: Then::Accept,
        ..TermSpec::default()
    };
    let invalid = TermSpec {
        rpki: one("invalid"),
        then: Then::Deny,
        ..TermSpec::default()
    };
    let mut specs = Vec::new();
    let mut add = |name: String, term: Vec<TermSpec>| specs.push(Spec { name, term });
    let mut import = |whom: &str, term: TermSpec| {
        add(format!("from-{whom}"), vec![term.clone()]);
        add(format!("from-{whom}-valid"), vec![invalid.clone(), term]);
    };
    import("open", accept.clone());
    for (whom, preference) in PREFERENCES {
        let mut term = TermSpec {
            set_local_pref: Some(preference),
            remove_community: one(FROM_CUSTOMER),
            ..accept.clone()
        };
        if whom == "customer" {
            (term.add_community, term.remove_community) = (one(FROM_CUSTOMER), Vec::new());
        }
        import(whom, term);
    }
    let unmarked = TermSpec {
        remove_community: one(FROM_CUSTOMER),
        ..accept.clone()
    };
    let customers = TermSpec {
        community: one(FROM_CUSTOMER),
        ..unmarked.clone()
    };
    let own = TermSpec {
        neighbour: one("local"),
        ..accept.clone()
    };
    add("to-open".to_owned(), vec![accept]);
    add("to-customer".to_owned(), vec![unmarked.clone()]);
    for whom in ["peer", "provider"] {
        add(format!("to-{whom}"), vec![own.clone(), customers.clone()]);
    }
    add("leak-open".to_owned(), vec![unmarked]);
    compile(&specs).expect("our own policies are right")
}
