//! The server by the sections of RFC 8415, without an edge.

use core::net::Ipv6Addr;

use super::*;

const CLIENT: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 7];
const NOW: Instant = Instant::ZERO;

/// A link with one prefix and perhaps one address.
#[derive(Default)]
struct Shelf {
    prefix: Option<&'static str>,
    address: Option<&'static str>,
    held: [Option<Prefix>; 2],
}

fn prefix(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), length.parse().unwrap()).unwrap()
}

impl Stock for Shelf {
    fn look(&mut self, wanted: Wanted, _: Option<Prefix>) -> Option<Prefix> {
        match wanted {
            Wanted::Address => self.address.map(prefix),
            Wanted::Prefix => self.prefix.map(prefix),
        }
    }

    fn take(&mut self, wanted: Wanted, wish: Option<Prefix>) -> Option<Prefix> {
        self.held[wanted as usize] = self.look(wanted, wish);
        self.held[wanted as usize]
    }

    fn held(&self, wanted: Wanted) -> Option<Prefix> {
        self.held[wanted as usize]
    }

    fn give_back(&mut self, wanted: Wanted) {
        self.held[wanted as usize] = None;
    }

    fn is_on_link(&self, address: IpAddr) -> bool {
        self.address
            .is_some_and(|own| prefix(own).contains(address))
    }

    fn is_leasable(&self, address: IpAddr) -> bool {
        prefix("2001:db8::/112").contains(address)
    }
}

struct Bench {
    settings: Settings,
    shelf: Shelf,
    leases: Leases,
}

impl Bench {
    fn new() -> Self {
        Self {
            settings: Settings {
                dns: vec!["2001:db8::53".parse().unwrap()],
                ..Settings::default()
            },
            shelf: Shelf {
                prefix: Some("2001:db8:100::/56"),
                ..Shelf::default()
            },
            leases: Leases::default(),
        }
    }

    fn send(&mut self, octets: &[u8]) -> Result<Vec<u8>, Refused> {
        self.send_to(octets, true)
    }

    fn send_to(&mut self, octets: &[u8], is_multicast: bool) -> Result<Vec<u8>, Refused> {
        let server = Server {
            settings: &self.settings,
            dns: &self.settings.dns,
        };
        let mut out = Vec::new();
        let link = (&mut self.leases, &mut self.shelf);
        let hash = |duid: &[u8]| duid.iter().fold(7, |sum, one| sum * 31 + u64::from(*one));
        let answer = server.answer(octets, is_multicast, link, hash, NOW, &mut out);
        answer.map(|_| out)
    }

    fn duid(&self) -> Box<[u8]> {
        self.settings.duid.clone()
    }

    /// A message of a client, to us where its type needs that, with one IA_PD.
    fn ask(&self, kind: Kind, lease: Option<Lease>) -> Vec<u8> {
        self.ask_of(kind, code::IA_PD, 1, lease)
    }

    fn ask_of(&self, kind: Kind, code: u16, iaid: u32, lease: Option<Lease>) -> Vec<u8> {
        let to_us = matches!(
            kind,
            Kind::Request | Kind::Renew | Kind::Release | Kind::Decline
        );
        let server = self.duid();
        message(kind, Some(CLIENT), to_us.then_some(&*server), |out| {
            out.association(code, [iaid, 0, 0], |out| {
                lease.iter().for_each(|lease| lease.write(out));
            });
        })
    }
}

fn message(
    kind: Kind,
    client: Option<&[u8]>,
    server: Option<&[u8]>,
    more: impl FnOnce(&mut Writer<'_>),
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(kind, [1, 2, 3], &mut out);
    for (code, id) in [(code::CLIENT_ID, client), (code::SERVER_ID, server)] {
        if let Some(id) = id {
            writer.option(code, &[id]);
        }
    }
    more(&mut writer);
    out
}

/// The leases of an association, and its status.
type Seen = (Vec<Lease>, Option<u16>);

/// The type of a reply, and its associations.
fn read(octets: &[u8]) -> (Kind, Vec<Seen>) {
    let message = Message::read(octets).unwrap();
    let associations = message.options.filter(|one| Wanted::of(one.code).is_some());
    let associations = associations.map(|one| {
        let association = Association::read(one.value).unwrap();
        (association.leases().collect(), status(association.options))
    });
    (message.kind, associations.collect())
}

fn status(options: Options<'_>) -> Option<u16> {
    let value = options.only(code::STATUS).unwrap()?;
    Some(u16::from_be_bytes([value[0], value[1]]))
}

fn lease(address: &str, length: u8, valid_s: u32) -> Lease {
    Lease {
        address: address.parse().unwrap(),
        length: Some(length),
        preferred_s: valid_s / 2,
        valid_s,
    }
}

/// Sections 18.3.1 and 18.3.2, and 18.2.2: four messages, and nothing is reserved before the third.
#[test]
fn a_solicit_is_offered_a_prefix_that_only_the_request_reserves() {
    let mut bench = Bench::new();
    let due = lease("2001:db8:100::", 56, 86_400);
    let offer = bench.send(&bench.ask(Kind::Solicit, None)).unwrap();
    assert_eq!(read(&offer), (Kind::Advertise, vec![(vec![due], None)]));
    assert_eq!(
        (bench.shelf.held, bench.leases),
        ([None; 2], Leases::default())
    );
    let reply = bench.send(&bench.ask(Kind::Request, Some(due))).unwrap();
    assert_eq!(read(&reply), (Kind::Reply, vec![(vec![due], None)]));
    let message = Message::read(&reply).unwrap();
    assert_eq!(message.transaction, [1, 2, 3]);
    assert_eq!(message.options.only(code::CLIENT_ID), Ok(Some(CLIENT)));
    assert_eq!(
        message.options.only(code::SERVER_ID),
        Ok(Some(&*bench.duid()))
    );
    let value = message.options.only(code::IA_PD).unwrap().unwrap();
    let association = Association::read(value).unwrap();
    // T1 and T2 are 0.5 and 0.8 of the preferred lifetime (section 21.21).
    assert_eq!((association.t1_s, association.t2_s), (21_600, 34_560));
    assert!(bench.leases.has(Wanted::Prefix));
    let end = NOW + Duration::from_secs(86_400);
    assert_eq!(bench.leases.deadline(), end);
    assert_eq!(bench.leases.expire(end), Some(Wanted::Prefix));
    assert_eq!(bench.leases.expire(end), None);
}

/// Section 18.3.1: Rapid Commit, if it is allowed.
#[test]
fn rapid_commit_leases_with_two_messages() {
    let mut bench = Bench::new();
    let solicit = message(Kind::Solicit, Some(CLIENT), None, |out| {
        out.option(code::RAPID_COMMIT, &[]);
        out.association(code::IA_PD, [1, 0, 0], |_| {});
    });
    let reply = bench.send(&solicit).unwrap();
    assert_eq!(read(&reply).0, Kind::Reply);
    assert!(
        Message::read(&reply)
            .unwrap()
            .options
            .has(code::RAPID_COMMIT)
    );
    assert!(bench.leases.has(Wanted::Prefix));
    let mut bench = Bench::new();
    bench.settings.rapid_commit = false;
    let reply = bench.send(&solicit).unwrap();
    assert_eq!(read(&reply).0, Kind::Advertise);
    assert!(!bench.leases.has(Wanted::Prefix));
}

/// Sections 18.3.4, 18.3.5, 18.3.7 and 18.3.8.
#[test]
fn leases_are_extended_released_and_unknown_ones_refused() {
    let mut bench = Bench::new();
    let due = lease("2001:db8:100::", 56, 86_400);
    let old = lease("2001:db8:900::", 56, 100);
    for (kind, status) in [(Kind::Renew, 3), (Kind::Release, 3)] {
        let reply = bench.send(&bench.ask(kind, Some(old))).unwrap();
        assert_eq!(read(&reply).1, [(vec![], Some(status))], "{kind:?}");
    }
    let gone = lease("2001:db8:900::", 56, 0);
    let reply = bench.send(&bench.ask(Kind::Rebind, Some(old))).unwrap();
    assert_eq!(read(&reply).1, [(vec![gone], None)]);
    let reply = bench.send(&bench.ask(Kind::Rebind, None)).unwrap();
    assert_eq!(read(&reply).1, [(vec![], Some(3))], "nothing to withdraw");
    bench.send(&bench.ask(Kind::Request, None)).unwrap();
    for kind in [Kind::Renew, Kind::Rebind] {
        let reply = bench.send(&bench.ask(kind, Some(due))).unwrap();
        assert_eq!(read(&reply).1, [(vec![due], None)], "{kind:?}");
    }
    // A prefix that the client had elsewhere is withdrawn beside that of its lease.
    let reply = bench.send(&bench.ask(Kind::Renew, Some(old))).unwrap();
    assert_eq!(read(&reply).1, [(vec![due, gone], None)]);
    // Another association of the same client has no lease.
    let other = bench.ask_of(Kind::Renew, code::IA_PD, 2, Some(due));
    let reply = bench.send(&other).unwrap();
    assert_eq!(read(&reply).1, [(vec![], Some(3))]);
    let reply = bench.send(&bench.ask(Kind::Release, Some(due))).unwrap();
    let message = Message::read(&reply).unwrap();
    assert_eq!((read(&reply).1, status(message.options)), (vec![], Some(0)));
    assert_eq!(
        (bench.shelf.held, bench.leases),
        ([None; 2], Leases::default())
    );
}

/// Section 18.3.8: a declined address is freed, and only its own client can decline it.
#[test]
fn a_declined_address_is_freed_and_counted_and_others_decline_nothing() {
    let mut bench = Bench::new();
    bench.shelf.address = Some("2001:db8:9::7/128");
    let due = Lease {
        length: None,
        ..lease("2001:db8:9::7", 128, 86_400)
    };
    let ask = |bench: &Bench, kind, iaid| bench.ask_of(kind, code::IA_NA, iaid, Some(due));
    let early = bench.send(&ask(&bench, Kind::Decline, 1)).unwrap();
    assert_eq!(read(&early).1, [(vec![], Some(3))], "NoBinding");
    let reply = bench.send(&ask(&bench, Kind::Request, 1)).unwrap();
    assert_eq!(read(&reply).1, [(vec![due], None)]);
    let other = bench.send(&ask(&bench, Kind::Decline, 2)).unwrap();
    assert_eq!(read(&other).1, [(vec![], Some(3))], "another association");
    assert!(bench.leases.has(Wanted::Address));
    let server = Server {
        settings: &bench.settings,
        dns: &[],
    };
    let decline = ask(&bench, Kind::Decline, 1);
    let hash = |duid: &[u8]| duid.iter().fold(7, |sum, one| sum * 31 + u64::from(*one));
    let mut out = Vec::new();
    let link = (&mut bench.leases, &mut bench.shelf);
    let answer = server.answer(&decline, true, link, hash, NOW, &mut out);
    let answer = answer.unwrap();
    assert_eq!((answer.freed, answer.declined), (1, true));
    let options = Message::read(&out).unwrap().options;
    assert_eq!(status(options), Some(0), "Success");
    assert_eq!(
        (bench.shelf.held, bench.leases),
        ([None; 2], Leases::default())
    );
}

/// Section 18.3.9: an Advertise without leases says why, for addresses and for prefixes.
#[test]
fn what_is_not_available_has_its_status() {
    let mut bench = Bench::new();
    bench.shelf.prefix = None;
    for (code, due) in [(code::IA_NA, 2), (code::IA_PD, 6)] {
        for kind in [Kind::Solicit, Kind::Request] {
            let reply = bench.send(&bench.ask_of(kind, code, 1, None)).unwrap();
            assert_eq!(read(&reply).1, [(vec![], Some(due))], "{kind:?}");
        }
    }
    assert_eq!(bench.leases, Leases::default());
}

/// A second association of a kind gets nothing: nested or repeated, the link has one lease.
#[test]
fn repeated_associations_share_nothing() {
    let mut bench = Bench::new();
    let server = bench.duid();
    let request = message(Kind::Request, Some(CLIENT), Some(&server), |out| {
        for iaid in 0..100 {
            out.association(code::IA_PD, [iaid, 0, 0], |out| {
                // An association inside an association is no lease.
                out.association(code::IA_PD, [iaid, 0, 0], |_| {});
            });
        }
    });
    let reply = bench.send(&request).unwrap();
    let associations = read(&reply).1;
    assert_eq!(associations.len(), ASSOCIATIONS_MAX);
    assert_eq!(associations[0].0.len(), 1);
    assert!(
        associations[1..]
            .iter()
            .all(|one| *one == (vec![], Some(6)))
    );
}

/// Sections 16.2 to 16.12.
#[test]
fn messages_with_wrong_identifiers_are_discarded() {
    let mut bench = Bench::new();
    let own = bench.duid();
    let other: &[u8] = &[0, 3, 0, 1, 9, 9, 9, 9, 9, 9];
    let own = Some(&*own);
    for (kind, client, server, why) in [
        (Kind::Solicit, None, None, Refused::ClientId),
        (Kind::Solicit, Some(CLIENT), own, Refused::ServerId),
        (Kind::Request, Some(CLIENT), None, Refused::ServerId),
        (Kind::Request, Some(CLIENT), Some(other), Refused::ServerId),
        (Kind::Request, None, own, Refused::ClientId),
        (Kind::Confirm, Some(CLIENT), own, Refused::ServerId),
        (Kind::Confirm, None, None, Refused::ClientId),
        (Kind::Renew, Some(CLIENT), Some(other), Refused::ServerId),
        (Kind::Renew, Some(CLIENT), None, Refused::ServerId),
        (Kind::Rebind, Some(CLIENT), own, Refused::ServerId),
        (Kind::Release, Some(CLIENT), None, Refused::ServerId),
        (Kind::Decline, Some(CLIENT), Some(other), Refused::ServerId),
        (
            Kind::InformationRequest,
            None,
            Some(other),
            Refused::ServerId,
        ),
        (Kind::Advertise, Some(CLIENT), own, Refused::Kind),
        (Kind::Reply, Some(CLIENT), own, Refused::Kind),
        (Kind::Reconfigure, Some(CLIENT), own, Refused::Kind),
        (Kind::Solicit, Some(&[0, 1]), None, Refused::ClientId),
        (Kind::Solicit, Some(&[0; 131]), None, Refused::ClientId),
    ] {
        let sent = bench.send(&message(kind, client, server, |_| {}));
        assert_eq!(sent, Err(why), "{kind:?}");
    }
    let twice = message(Kind::Solicit, Some(CLIENT), None, |out| {
        out.option(code::CLIENT_ID, &[CLIENT]);
    });
    assert_eq!(bench.send(&twice), Err(Refused::Repeated(Repeated(1))));
    let relayed = [12; 40];
    let malformed = Refused::Malformed(DhcpError::Kind(12));
    assert_eq!(bench.send(&relayed), Err(malformed));
    let associated = message(Kind::InformationRequest, None, None, |out| {
        out.association(code::IA_PD, [1, 0, 0], |_| {});
    });
    assert_eq!(bench.send(&associated), Err(Refused::Association));
}

/// Section 18.4: we allow no unicast.
#[test]
fn a_message_to_our_own_address_is_told_to_use_multicast_or_discarded() {
    let mut bench = Bench::new();
    let reply = bench
        .send_to(&bench.ask(Kind::Request, None), false)
        .unwrap();
    let options = Message::read(&reply).unwrap().options;
    assert_eq!((status(options), read(&reply).1), (Some(5), vec![]));
    let solicit = bench.ask(Kind::Solicit, None);
    assert_eq!(bench.send_to(&solicit, false), Err(Refused::Unicast));
    assert_eq!(bench.leases, Leases::default());
}

/// Section 18.3.6, and RFC 3646: names are in the reply if the client asks for them.
#[test]
fn an_information_request_gets_the_names_that_it_asks_for() {
    let mut bench = Bench::new();
    let mut search = Vec::new();
    wire::dns::encode("example.net", &mut search).unwrap();
    bench.settings.search = search.clone().into();
    let asked = message(Kind::InformationRequest, None, None, |out| {
        out.option(code::ORO, &[&[0, 23, 0, 24]]);
    });
    let reply = bench.send(&asked).unwrap();
    let options = Message::read(&reply).unwrap().options;
    let dns: Ipv6Addr = "2001:db8::53".parse().unwrap();
    assert_eq!(options.only(code::DNS_SERVERS), Ok(Some(&dns.octets()[..])));
    assert_eq!(options.only(code::DOMAIN_LIST), Ok(Some(&search[..])));
    let plain = bench
        .send(&message(Kind::InformationRequest, None, None, |_| {}))
        .unwrap();
    assert!(
        !Message::read(&plain)
            .unwrap()
            .options
            .has(code::DNS_SERVERS)
    );
}

/// Section 18.3.3.
#[test]
fn a_confirm_is_answered_by_whether_addresses_are_on_the_link() {
    let mut bench = Bench::new();
    bench.shelf.address = Some("2001:db8::9/128");
    let ask = |bench: &Bench, address: &str| {
        let lease = Lease {
            length: None,
            ..lease(address, 128, 100)
        };
        bench.ask_of(Kind::Confirm, code::IA_NA, 1, Some(lease))
    };
    for (address, due) in [("2001:db8::9", 0), ("2001:db8::8", 4)] {
        let reply = bench.send(&ask(&bench, address)).unwrap();
        assert_eq!(status(Message::read(&reply).unwrap().options), Some(due));
    }
    let none = bench.ask_of(Kind::Confirm, code::IA_NA, 1, None);
    assert_eq!(bench.send(&none), Err(Refused::Nothing));
}

/// Section 18.3.2: another client on the link takes the lease over, and there is one lease still.
#[test]
fn a_request_of_a_replaced_router_takes_the_lease_over() {
    let mut bench = Bench::new();
    bench.send(&bench.ask(Kind::Request, None)).unwrap();
    let server = bench.duid();
    let other: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 8];
    let request = message(Kind::Request, Some(other), Some(&server), |out| {
        out.association(code::IA_PD, [5, 0, 0], |_| {});
    });
    let reply = bench.send(&request).unwrap();
    let due = lease("2001:db8:100::", 56, 86_400);
    assert_eq!(read(&reply).1, [(vec![due], None)]);
    let reply = bench.send(&bench.ask(Kind::Renew, Some(due))).unwrap();
    assert_eq!(read(&reply).1, [(vec![], Some(3))], "the first router's");
}

/// Sections 18.2.12 and 18.3.5: after a link was down, its router rebinds the prefix that it has, and keeps that if the
/// link can have it again.
#[test]
fn a_prefix_of_an_earlier_session_is_leased_again_by_a_rebind() {
    let due = lease("2001:db8:100::", 56, 86_400);
    let mut bench = Bench::new();
    let reply = bench.send(&bench.ask(Kind::Rebind, Some(due))).unwrap();
    assert_eq!(read(&reply).1, [(vec![due], None)]);
    assert!(bench.leases.has(Wanted::Prefix));
    let held = bench.shelf.held(Wanted::Prefix);
    assert_eq!(held, Some(prefix("2001:db8:100::/56")));
    // Another server may answer a Rebind too, so this needs Rapid Commit.
    let mut bench = Bench::new();
    bench.settings.rapid_commit = false;
    let reply = bench.send(&bench.ask(Kind::Rebind, Some(due))).unwrap();
    let over = lease("2001:db8:100::", 56, 0);
    assert_eq!(read(&reply).1, [(vec![over], None)]);
    assert!(!bench.leases.has(Wanted::Prefix));
}

/// Sections 18.3.7 and 18.3.8: "The server ignores leases not assigned to the IAs".
#[test]
fn a_release_of_another_prefix_or_of_none_frees_nothing() {
    let mut bench = Bench::new();
    bench.send(&bench.ask(Kind::Request, None)).unwrap();
    let other = lease("2001:db8:900::", 56, 100);
    let longer = lease("2001:db8:100::", 60, 100);
    for named in [Some(other), Some(longer), None] {
        let reply = bench.send(&bench.ask(Kind::Release, named)).unwrap();
        let options = Message::read(&reply).unwrap().options;
        assert_eq!((read(&reply).1, status(options)), (vec![], Some(0)));
        assert!(bench.leases.has(Wanted::Prefix), "{named:?}");
    }
}

/// A client with two associations of prefixes: the lease stays with one of them, in whatever order and message they are.
#[test]
fn two_associations_of_a_client_do_not_take_the_lease_from_each_other() {
    let mut bench = Bench::new();
    let server = bench.duid();
    let due = lease("2001:db8:100::", 56, 86_400);
    let both = |kind, iaids: [u32; 2]| {
        let server = (kind != Kind::Rebind && kind != Kind::Solicit).then_some(&*server);
        message(kind, Some(CLIENT), server, |out| {
            for iaid in iaids {
                out.association(code::IA_PD, [iaid, 0, 0], |_| {});
            }
        })
    };
    let with = (vec![due], None);
    let without = (vec![], Some(6));
    let reply = bench.send(&both(Kind::Request, [1, 2])).unwrap();
    assert_eq!(read(&reply).1, [with.clone(), without.clone()]);
    for kind in [Kind::Renew, Kind::Rebind, Kind::Request, Kind::Solicit] {
        let reply = bench.send(&both(kind, [2, 1])).unwrap();
        assert_eq!(
            read(&reply).1,
            [without.clone(), with.clone()],
            "{kind:?}: NoPrefixAvail, not NoBinding, which would make the client request it"
        );
    }
    // Alone, another association of the client takes it over: its router may have numbered them anew.
    let reply = bench
        .send(&bench.ask_of(Kind::Request, code::IA_PD, 2, None))
        .unwrap();
    assert_eq!(read(&reply).1, [with]);
}

/// Section 18.3.2: "MUST return the IA to the client with a Status Code option with the value NotOnLink".
#[test]
fn a_request_of_an_address_of_another_link_is_not_on_link() {
    let mut bench = Bench::new();
    bench.shelf.address = Some("2001:db8::9/128");
    let named = |address: &str| Lease {
        length: None,
        ..lease(address, 128, 86_400)
    };
    let ask =
        |bench: &Bench, address| bench.ask_of(Kind::Request, code::IA_NA, 1, Some(named(address)));
    let reply = bench.send(&ask(&bench, "2001:db8:77::1")).unwrap();
    assert_eq!(read(&reply).1, [(vec![], Some(4))]);
    assert!(!bench.leases.has(Wanted::Address));
    // One of the link's pool that another subscriber has by now: the client gets another one.
    let reply = bench.send(&ask(&bench, "2001:db8::8")).unwrap();
    let due = Lease {
        length: None,
        ..lease("2001:db8::9", 128, 86_400)
    };
    assert_eq!(read(&reply).1[0].0[0], due);
}
