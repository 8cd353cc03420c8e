//! What may happen on the street: hosts call, talk, hang up and lose power; servers change their mood; configurations
//! change; VLANs and interfaces vanish.

use aaa::accounting::SessionId;
use base::{Duration, Redacted};
use edge::access::Either::{First, Second};
use edge::{Dial, End, Phase};
use filter::FilterSet;
use l2tp::OpenTunnel;
use ppp::Credentials;
use sim::NodeHandle;
use wire::pppoe::{Code, Writer, tag};
use wire::radius::{attribute as a, code};

use crate::check::subscribers;
use crate::desk::{BOOT, wall_s};
use crate::node::{EDGE, Node, VLANS, ip, vlan};
use crate::radius::{Mood, PASSWORD};
use crate::street::{HOST, Street, host, link, nat_config, own, specs, vary};
use crate::v6;

impl Street {
    fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        let at = self.rng.below(list.len() as u64) as usize;
        list.get(at).copied()
    }

    pub(crate) fn chance(&mut self) {
        let hosts = self.hosts.clone();
        let host = self.pick(&hosts).expect("there are some");
        match self.rng.below(100) {
            0..24 => self.dial(host),
            24..30 => self.dial_all(),
            30..36 => self.dial_eap(),
            36..42 => self.dial_tunnel(),
            42..54 => self.talk(),
            54..58 => self.say(host),
            58..61 => self.hang_up(host),
            61..64 => self.drop_one(),
            64..68 => self.lose_power(host),
            68..70 => self.kill_lns(),
            70..73 => self.change_mood(),
            73..82 => self.request(),
            82..85 => self.reload(),
            85..88 => self.lose_vlan(),
            88 => self.lose_interface(),
            89..91 => self.flood(host),
            91..93 => self.storm(host),
            93..95 => {
                let link = link(&mut self.rng);
                self.world.set_default_link(link);
            }
            95 => self.world.cut(host, self.edge),
            96..98 => self.world.heal(host, self.edge),
            _ => self.close_tunnel(),
        }
    }

    fn credentials(&mut self, station: u8) -> Option<Credentials> {
        let user = match self.rng.chance(0.5) {
            true => u64::from(station),
            false => self.rng.below(32),
        };
        let realm = ["", "", "@isp"][self.rng.below(3) as usize];
        let secret = match self.rng.chance(0.9) {
            true => PASSWORD,
            false => b"guess",
        };
        Some(Credentials {
            name: format!("user{user}{realm}").into_bytes().into(),
            secret: Redacted::new(secret.into()),
        })
    }

    fn side(&mut self, station: u8) -> Dial {
        Dial {
            credentials: self.credentials(station),
            ipv4: self.rng.chance(0.9),
            ipv6: self.rng.chance(0.6),
            networks: Vec::new(),
        }
    }

    /// Everybody calls.
    pub(crate) fn dial_all(&mut self) {
        for host in self.hosts.clone() {
            self.dial(host);
        }
        for _ in 0..3 {
            self.dial_tunnel();
        }
        self.dial_eap();
    }

    /// Mostly the VLAN of a station; sometimes another.
    fn vlan_of(&mut self, station: u8) -> u32 {
        match self.rng.chance(0.8) {
            true => u32::from(station) % VLANS,
            false => self.rng.below(VLANS.into()) as u32,
        }
    }

    /// A host calls the first server that answers, or the edge by its name.
    pub(crate) fn dial(&mut self, host: NodeHandle<Node>) {
        let node = &self.world[host];
        if node.edge.endpoint().pppoe().count() > 0 {
            return;
        }
        let dial = self.side(self.world[host].station);
        let wanted = self.rng.chance(0.8).then(|| b"street"[..].into());
        let number = self.vlan_of(self.world[host].station);
        self.world.with(host, |node, now| {
            let call = pppoe::Dial {
                ac_name: wanted,
                padis: 3,
                ..pppoe::Dial::default()
            };
            let endpoint = node.edge.endpoint_mut().pppoe_mut();
            let session = endpoint.dial(0, vlan(number), call, now);
            let session = session.expect("it has no other");
            node.edge.dial(Second(session), dial, now);
        });
    }

    fn dial_eap(&mut self) {
        let all = self.eap.clone();
        let one = self.pick(&all).expect("there are some");
        let number = self.rng.below(VLANS.into()) as u32;
        self.world.with(one, |one, now| one.dial(number, now));
    }

    /// The LAC opens a tunnel, or a session in one.
    fn dial_tunnel(&mut self) {
        let lac = self.lac;
        let endpoint = self.world[lac].edge.endpoint().l2tp();
        let tunnel = endpoint.next_tunnel(0).map(|(_, view)| view.key);
        let sessions = endpoint.counts().sessions;
        let dial = self.side(self.world[lac].station);
        self.world.with(lac, |node, now| {
            let endpoint = node.edge.endpoint_mut().l2tp_mut();
            let Some(tunnel) = tunnel else {
                let route = base::Route {
                    peer: (ip(EDGE), 1701).into(),
                    local: None,
                    socket: 0,
                };
                let version = wire::l2tp::Version::V2;
                let _ = endpoint.open_tunnel(OpenTunnel { route, version }, now);
                return;
            };
            if sessions < 6
                && let Ok(session) = endpoint.open_session(tunnel, l2tp::Call::default(), now)
            {
                node.edge.dial(First(session), dial, now);
            }
        });
    }

    /// Everybody sends a packet, and one host from so many ports that it needs another block, or may not have it.
    fn talk(&mut self) {
        let all = [&self.hosts[..], &[self.lac]].concat();
        let busy = self.pick(&all).expect("there are some");
        for host in all {
            let count = match host.id() == busy.id() {
                true => [1, 40, 80][self.rng.below(3) as usize],
                false => 1,
            };
            let first = 1_000 + self.rng.below(200) as u16;
            self.world.with(host, |node, now| {
                (first..first + count).for_each(|port| node.talk(port, now));
            });
        }
    }

    /// A host sends a message to its router by hand.
    fn say(&mut self, host: NodeHandle<Node>) {
        let one = subscribers(&self.world[host].edge).next();
        let Some([own, _]) = one.and_then(|one| one.ipv6) else {
            return;
        };
        for _ in 0..3 {
            let frame = v6::frame(&mut self.rng, own);
            self.world.with(host, |node, _| node.say(&frame));
        }
    }

    fn hang_up(&mut self, host: NodeHandle<Node>) {
        self.world.with(host, |node, now| {
            let key = subscribers(&node.edge).next().map(|one| one.key);
            if let Some(key) = key {
                node.edge.drop_subscriber(key, End::Administrator, now);
            }
        });
    }

    fn drop_one(&mut self) {
        let edge = self.edge;
        let keys: Vec<_> = subscribers(&self.world[edge].edge)
            .map(|one| one.key)
            .collect();
        if let Some(key) = self.pick(&keys) {
            self.world.with(edge, |node, now| {
                node.edge.drop_subscriber(key, End::Administrator, now);
                assert!(!node.edge.drop_subscriber(key, End::ShutDown, now));
            });
        }
    }

    /// A host loses power: no PADT. It comes back with the same MAC address.
    fn lose_power(&mut self, host: NodeHandle<Node>) {
        let station = self.world[host].station;
        let node = self::host(station, &mut self.rng);
        self.world.replace(host, node);
        if self.rng.chance(0.5) {
            self.dial(host);
        }
    }

    /// An LNS forgets everything.
    fn kill_lns(&mut self) {
        let all = self.lns.clone();
        let one = self.pick(&all).expect("two");
        let station = self.world[one].station;
        let node = crate::street::other(station, &mut self.rng);
        self.world.replace(one, node);
    }

    fn change_mood(&mut self) {
        let all = self.servers.clone();
        let server = self.pick(&all).expect("two");
        let mood = Mood::any(&mut self.rng);
        self.world.with(server, |server, _| server.mood = mood);
    }

    /// A server sends a Disconnect-Request or a CoA-Request about any session, often one that is ending.
    fn request(&mut self) {
        let all = self.servers.clone();
        let server = self.pick(&all).expect("two");
        if self.rng.chance(0.2) {
            return self.world.with(server, |server, _| server.repeat());
        }
        let views = subscribers(&self.world[self.edge].edge);
        let views: Vec<_> = views
            .map(|one| (one.name.to_vec(), one.account, one.phase))
            .collect();
        let ending = views.iter().filter(|one| one.2 == Phase::Ending);
        let ending: Vec<_> = ending.cloned().collect();
        let from = if ending.is_empty() { &views } else { &ending };
        let at = self.rng.below(from.len() as u64) as usize;
        let Some((name, number, _)) = from.get(at).cloned() else {
            return;
        };
        let session = SessionId { boot: BOOT, number }.text();
        let about: (u8, &[u8]) = match self.rng.chance(0.5) || name.is_empty() {
            true => (a::ACCT_SESSION_ID, &session),
            false => (a::USER_NAME, &name),
        };
        let seconds = (self.rng.below(3) as u32 * 20).to_be_bytes();
        let what: (u8, &[u8]) = match self.rng.below(4) {
            0 => (a::IDLE_TIMEOUT, &seconds),
            1 => (a::FILTER_ID, b"none of this name"),
            2 => (a::FILTER_ID, b"web"),
            _ => (a::SESSION_TIMEOUT, &seconds),
        };
        let ends = self.rng.chance(0.4);
        // The end of a session and a request about it may meet.
        if self.rng.chance(0.3) {
            self.drop_one();
        }
        self.world.with(server, |server, now| match ends {
            true => server.request(code::DISCONNECT_REQUEST, wall_s(now), &[about]),
            false => server.request(code::COA_REQUEST, wall_s(now), &[about, what]),
        });
    }

    /// Other pools, filters, external addresses or intervals.
    fn reload(&mut self) {
        let rng = &mut self.rng;
        match rng.below(4) {
            0 => {
                let (addresses, prefixes) = (specs(rng), v6::specs(rng));
                self.world.with(self.edge, |node, _| {
                    node.edge
                        .pools_mut()
                        .reload(addresses, own())
                        .expect("faultless");
                    node.edge
                        .prefixes_mut()
                        .reload(prefixes)
                        .expect("faultless");
                });
            }
            1 => {
                let texts = [
                    "",
                    "filter web\nin\ndeny udp\naccept ip\n",
                    "filter web\nin\naccept ip\n",
                ];
                let text = texts[rng.below(3) as usize];
                let names = filter::Names::well_known();
                let set = FilterSet::parse(text, &names).expect("filters").0;
                self.world
                    .with(self.edge, |node, _| node.edge.filters_mut().replace(set));
            }
            2 => {
                let config = nat_config(rng.below(3));
                self.world.with(self.edge, |node, _| {
                    let taken = node.edge.reconfigure_nat(config);
                    taken.expect("the same tables");
                });
            }
            _ => {
                let mut config = self.world[self.edge].edge.config().clone();
                vary(&mut config, rng);
                self.world
                    .with(self.edge, |node, now| node.edge.set_config(config, now));
            }
        }
    }

    /// A VLAN vanishes from the edge's interface, or is back.
    fn lose_vlan(&mut self) {
        let number = self.rng.below(VLANS.into()) as u32;
        self.world.with(self.edge, |node, now| {
            let has = &mut node.has_vlan[number as usize];
            *has = !*has;
            if !*has {
                let endpoint = node.edge.endpoint_mut().pppoe_mut();
                endpoint.lose(|route| route.vlans == vlan(number), now);
            }
        });
    }

    /// The interface vanishes, or is back.
    fn lose_interface(&mut self) {
        self.world.with(self.edge, |node, now| {
            let endpoint = node.edge.endpoint_mut().pppoe_mut();
            match endpoint.port(0).is_some() {
                true => endpoint.remove_port(0, now),
                false => endpoint.add_port(0, pppoe::PortConfig::default()),
            }
        });
    }

    /// PADIs, and PADRs with cookies that nobody gave.
    fn flood(&mut self, host: NodeHandle<Node>) {
        for number in 0..40 {
            let code = [Code::PADI, Code::PADR][number % 2];
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes, code, 0);
            writer.tag(tag::SERVICE_NAME, b"");
            writer.tag(tag::HOST_UNIQ, &[number as u8]);
            if code == Code::PADR {
                writer.tag(tag::AC_COOKIE, &[number as u8; 24]);
            }
            writer.finish();
            self.world.with(host, |node, _| node.shout(0, EDGE, bytes));
        }
    }

    /// PADTs for session ids that may be those of others.
    fn storm(&mut self, host: NodeHandle<Node>) {
        let hosts = self.world[self.edge].edge.endpoint().pppoe();
        let ids: Vec<_> = hosts.sessions().map(|one| one.id).collect();
        let of_host = self.world[host].station;
        for id in ids.into_iter().chain([0, 1, 0xffff]) {
            let mut bytes = Vec::new();
            Writer::new(&mut bytes, Code::PADT, id).finish();
            self.world.with(host, |node, _| node.shout(0, EDGE, bytes));
        }
        assert!(of_host >= HOST);
    }

    fn close_tunnel(&mut self) {
        let node = [self.lac, self.edge][self.rng.below(2) as usize];
        self.world.with(node, |node, now| {
            let endpoint = node.edge.endpoint_mut().l2tp_mut();
            if let Some(key) = endpoint.next_tunnel(0).map(|(_, view)| view.key) {
                endpoint.close_tunnel(key, now);
            }
        });
    }

    /// A time in which anything may be under way.
    pub(crate) fn pause(&mut self) {
        let pause = Duration::from_millis(1) + self.rng.up_to(Duration::from_secs(4));
        self.world.run_for(pause);
    }
}
