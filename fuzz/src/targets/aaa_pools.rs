//! Address pools: for any sequence of requests, no address has two holders, and none is lost.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use aaa::pools::{Fault, Holder, Pools, Request, Spec};

/// Pool configurations that the requests switch between.
const SHAPES: [&[(&str, &[&str])]; 3] = [
    &[("a", &["10.0.0.0/29"]), ("b", &["10.0.0.16-10.0.0.20"])],
    &[("a", &["10.0.0.4-10.0.0.11"])],
    &[
        ("b", &["10.0.0.16-10.0.0.20"]),
        ("c", &["10.0.0.0-10.0.0.7", "10.0.0.24/30"]),
    ],
];

/// Takes requests of four octets: the operation, the holder, the address, and the user and pool.
///
/// # Panics
/// If an address is held twice, or the counters disagree with the held addresses.
pub fn target(data: &[u8]) {
    let own = Ipv4Addr::new(10, 0, 0, 1);
    let mut pools = Pools::new(specs(0), vec![own], 1).expect("faultless");
    let mut held: BTreeMap<Ipv4Addr, Holder> = BTreeMap::new();
    for request in data.chunks_exact(4) {
        let &[what, who, place, user] = request else {
            return;
        };
        let holder = Holder(u64::from(who));
        let address = Ipv4Addr::new(10, 0, 0, place % 32);
        match what % 8 {
            0..3 => {
                let request = Request {
                    pool: ["a", "b", "c"].get(usize::from(user >> 6)).copied(),
                    holder,
                    user: &[user & 7],
                    sticky: user & 8 != 0,
                };
                if let Ok(taken) = pools.take(&request) {
                    assert_ne!(taken, own);
                    assert_eq!(held.insert(taken, holder), None, "{taken} twice");
                }
            }
            3 => {
                let wish = Ipv4Addr::new(10, 0, 0, user % 32);
                if pools.exchange(address, wish, holder) {
                    assert_ne!(wish, own);
                    assert_eq!(held.remove(&address), Some(holder));
                    assert_eq!(held.insert(wish, holder), None, "{wish} twice");
                }
            }
            4 => match pools.claim(address, holder) {
                Ok(()) => assert_eq!(held.insert(address, holder), None, "{address} twice"),
                Err(Fault::Held { by }) => assert_eq!(held.get(&address), Some(&by)),
                Err(fault) => assert_eq!((fault, address), (Fault::Reserved, own)),
            },
            5..7 => {
                let is_its = held.get(&address) == Some(&holder);
                assert_eq!(pools.release(address, holder), is_its);
                if is_its {
                    held.remove(&address);
                }
            }
            _ => {
                let shape = specs(usize::from(place) % SHAPES.len());
                pools.reload(shape, vec![own]).expect("faultless");
            }
        }
        let used: u32 = pools.views().map(|view| view.used).sum();
        assert_eq!(used as usize + pools.outside().held, held.len());
        for (address, holder) in &held {
            assert_eq!(pools.holder(*address), Some(*holder));
        }
    }
}

fn specs(shape: usize) -> Vec<Spec> {
    let pools = SHAPES[shape].iter();
    let spec = |(name, ranges): &(&str, &[&str])| Spec {
        name: (*name).into(),
        ranges: ranges
            .iter()
            .map(|range| range.parse().expect("a range"))
            .collect(),
        sticky: *name == "b",
        ..Spec::default()
    };
    pools.map(spec).collect()
}
