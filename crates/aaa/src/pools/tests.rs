use std::collections::{BTreeMap, HashMap, VecDeque};

use proptest::prelude::*;

use super::*;

fn range(text: &str) -> Range {
    text.parse().expect("a range")
}

fn address(text: &str) -> Ipv4Addr {
    text.parse().expect("an address")
}

fn spec(name: &str, ranges: &[&str]) -> Spec {
    Spec {
        name: name.into(),
        ranges: ranges.iter().map(|text| range(text)).collect(),
        ..Spec::default()
    }
}

fn pools(specs: &[Spec]) -> Pools {
    Pools::new(specs.to_vec(), Vec::new(), 7).expect("faultless")
}

fn faults(specs: &[Spec], own: &[&str]) -> Vec<String> {
    let own = own.iter().map(|text| address(text)).collect();
    let Err(faults) = Pools::new(specs.to_vec(), own, 7) else {
        return Vec::new();
    };
    let told = |fault: &SpecFault| format!("{}.{}: {fault}", fault.pool, fault.key);
    faults.iter().map(told).collect()
}

fn plain(pool: &'static str, holder: u64) -> Request<'static> {
    Request {
        pool: Some(pool),
        holder: Holder(holder),
        user: b"",
        sticky: false,
    }
}

fn of(user: &'static str, holder: u64) -> Request<'static> {
    Request {
        pool: None,
        holder: Holder(holder),
        user: user.as_bytes(),
        sticky: true,
    }
}

fn take(pools: &mut Pools, request: &Request<'_>) -> String {
    match pools.take(request) {
        Ok(address) => address.to_string(),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn an_address_rests_as_long_as_the_pool_allows() {
    let mut pools = pools(&[spec("a", &["10.0.0.1-10.0.0.3"])]);
    assert_eq!(take(&mut pools, &plain("a", 1)), "10.0.0.1");
    assert!(pools.release(address("10.0.0.1"), Holder(1)));
    for (holder, expected) in [(2, "10.0.0.2"), (3, "10.0.0.3"), (4, "10.0.0.1")] {
        assert_eq!(take(&mut pools, &plain("a", holder)), expected);
    }
}

#[test]
fn a_full_pool_refuses_and_counts_and_another_is_not_touched() {
    let mut pools = pools(&[spec("a", &["10.0.0.1"]), spec("b", &["10.0.1.1"])]);
    assert_eq!(take(&mut pools, &plain("a", 1)), "10.0.0.1");
    assert_eq!(take(&mut pools, &plain("a", 2)), "all addresses are held");
    assert_eq!(take(&mut pools, &plain("b", 2)), "10.0.1.1");
    let full: Vec<u64> = pools.views().map(|view| view.full).collect();
    assert_eq!(full, [1, 0]);
    assert_eq!(take(&mut pools, &plain("c", 3)), "no pool has this name");
    assert_eq!(pools.outside().unknown_pool, 1);
}

#[test]
fn a_fixed_address_within_a_pool_is_not_given_out_and_a_second_claim_names_the_first() {
    let mut pools = pools(&[spec("a", &["10.0.0.1-10.0.0.2"])]);
    assert_eq!(pools.claim(address("10.0.0.1"), Holder(9)), Ok(()));
    assert_eq!(take(&mut pools, &plain("a", 1)), "10.0.0.2");
    assert_eq!(take(&mut pools, &plain("a", 2)), "all addresses are held");
    let by = Holder(9);
    let claim = pools.claim(address("10.0.0.1"), Holder(3));
    assert_eq!(claim, Err(Fault::Held { by }));
    assert_eq!(pools.claim(address("192.0.2.1"), Holder(5)), Ok(()));
    let by = Holder(5);
    let claim = pools.claim(address("192.0.2.1"), Holder(6));
    assert_eq!(claim, Err(Fault::Held { by }));
    assert_eq!(pools.outside().duplicates, 2);
    assert_eq!(pools.holder(address("192.0.2.1")), Some(Holder(5)));
    assert!(pools.release(address("10.0.0.1"), Holder(9)));
    assert!(pools.release(address("192.0.2.1"), Holder(5)));
    assert_eq!(take(&mut pools, &plain("a", 2)), "10.0.0.1");
    assert_eq!(pools.outside().held, 0);
}

#[test]
fn who_does_not_hold_an_address_does_not_free_it() {
    let mut pools = pools(&[spec("a", &["10.0.0.1"])]);
    assert_eq!(take(&mut pools, &plain("a", 1)), "10.0.0.1");
    for bits in ["10.0.0.1", "10.0.0.2"] {
        assert!(!pools.release(address(bits), Holder(2)));
    }
    assert!(pools.release(address("10.0.0.1"), Holder(1)));
    assert!(!pools.release(address("10.0.0.1"), Holder(1)));
}

#[test]
fn what_a_pool_leaves_out_is_not_given_out_but_may_be_claimed_unless_it_is_the_edges_own() {
    let mut spec = spec("a", &["10.0.0.0/30", "10.0.1.0/30"]);
    spec.excluded = vec![range("10.0.0.2"), range("10.0.1.1-10.0.1.9")];
    spec.skip_ends = true;
    let own = vec![address("10.0.0.1"), address("192.0.2.1")];
    let mut pools = Pools::new(vec![spec], own, 7).expect("faultless");
    assert_eq!(take(&mut pools, &plain("a", 1)), "10.0.0.3");
    assert_eq!(take(&mut pools, &plain("a", 2)), "all addresses are held");
    assert_eq!(pools.claim(address("10.0.0.2"), Holder(3)), Ok(()));
    for reserved in ["10.0.0.1", "192.0.2.1", "224.0.0.5", "127.0.0.1", "0.0.0.0"] {
        let claim = pools.claim(address(reserved), Holder(4));
        assert_eq!(claim, Err(Fault::Reserved), "{reserved}");
    }
    let view = pools.views().next().expect("a pool");
    assert_eq!(
        (view.size, view.used, view.free, view.left_out),
        (8, 2, 0, 6)
    );
    assert!(pools.release(address("10.0.0.2"), Holder(3)));
    assert_eq!(take(&mut pools, &plain("a", 5)), "all addresses are held");
}

#[test]
fn a_user_gets_its_last_address_back_and_nobody_else_while_others_are_free() {
    let mut pools = pools(&[spec("a", &["10.0.0.1-10.0.0.3"])]);
    assert_eq!(take(&mut pools, &of("ann", 1)), "10.0.0.1");
    assert!(pools.release(address("10.0.0.1"), Holder(1)));
    for holder in 2..4 {
        assert_ne!(take(&mut pools, &plain("a", holder)), "10.0.0.1");
    }
    assert_eq!(take(&mut pools, &of("ann", 4)), "10.0.0.1");
    assert!(pools.release(address("10.0.0.1"), Holder(4)));
    // No other address is free: the remembered one is leased, and forgotten.
    assert_eq!(take(&mut pools, &of("bob", 5)), "10.0.0.1");
    assert!(pools.release(address("10.0.0.1"), Holder(5)));
    assert!(pools.release(address("10.0.0.2"), Holder(2)));
    assert_eq!(take(&mut pools, &of("ann", 6)), "10.0.0.2");
    assert_eq!(take(&mut pools, &of("bob", 7)), "10.0.0.1");
    let view = pools.views().next().expect("a pool");
    assert_eq!((view.taken, view.came_back, view.remembered), (7, 2, 0));
}

#[test]
fn a_user_with_two_sessions_has_one_remembered_address() {
    let mut pools = pools(&[spec("a", &["10.0.0.1-10.0.0.4"])]);
    assert_eq!(take(&mut pools, &of("ann", 1)), "10.0.0.1");
    assert_eq!(take(&mut pools, &of("ann", 2)), "10.0.0.2");
    assert!(pools.release(address("10.0.0.2"), Holder(2)));
    assert!(pools.release(address("10.0.0.1"), Holder(1)));
    let view = pools.views().next().expect("a pool");
    assert_eq!((view.free, view.remembered), (4, 1));
    assert_eq!(take(&mut pools, &of("ann", 3)), "10.0.0.1");
}

#[test]
fn an_address_is_exchanged_for_a_free_one_that_the_pool_gives_out() {
    let excluding = Spec {
        excluded: vec![range("10.0.0.4")],
        ..spec("a", &["10.0.0.1-10.0.0.6"])
    };
    let specs = vec![excluding, spec("b", &["10.0.1.1-10.0.1.4"])];
    let own = vec![address("10.0.0.5")];
    let mut pools = Pools::new(specs, own, 7).expect("faultless");
    assert_eq!(take(&mut pools, &plain("a", 1)), "10.0.0.1");
    assert_eq!(take(&mut pools, &plain("a", 2)), "10.0.0.2");
    let mut exchange = |held, wish, holder| {
        let [held, wish] = [held, wish].map(address);
        pools.exchange(held, wish, Holder(holder))
    };
    // Held by another, excluded, the edge's own, in another pool, in no pool.
    for wish in ["10.0.0.2", "10.0.0.4", "10.0.0.5", "10.0.1.1", "192.0.2.1"] {
        assert!(!exchange("10.0.0.1", wish, 1), "{wish}");
    }
    // A holder that does not hold the first address gets no exchange for it.
    assert!(!exchange("10.0.0.1", "10.0.0.3", 9));
    assert!(exchange("10.0.0.1", "10.0.0.3", 1));
    assert_eq!(pools.holder(address("10.0.0.1")), None);
    assert_eq!(pools.holder(address("10.0.0.3")), Some(Holder(1)));
}

#[test]
fn an_address_that_was_exchanged_is_the_one_that_its_user_gets_back() {
    let mut pools = pools(&[spec("a", &["10.0.0.1-10.0.0.4"])]);
    assert_eq!(take(&mut pools, &of("ann", 1)), "10.0.0.1");
    assert!(pools.exchange(address("10.0.0.1"), address("10.0.0.3"), Holder(1)));
    assert!(pools.release(address("10.0.0.3"), Holder(1)));
    // It is remembered for her, so nobody else can ask for it.
    assert_eq!(take(&mut pools, &plain("a", 2)), "10.0.0.2");
    assert!(!pools.exchange(address("10.0.0.2"), address("10.0.0.3"), Holder(2)));
    assert_eq!(take(&mut pools, &of("ann", 3)), "10.0.0.3");
}

#[test]
fn a_reload_keeps_what_is_held_and_drains_what_is_gone() {
    let mut pools = pools(&[spec("a", &["10.0.0.1-10.0.0.2"]), spec("b", &["10.0.1.1"])]);
    assert_eq!(take(&mut pools, &plain("a", 1)), "10.0.0.1");
    assert_eq!(take(&mut pools, &plain("b", 2)), "10.0.1.1");
    assert_eq!(pools.claim(address("10.0.2.1"), Holder(3)), Ok(()));
    let new = vec![spec("a", &["10.0.0.2-10.0.0.3", "10.0.2.1-10.0.2.2"])];
    assert_eq!(pools.reload(new, vec![address("10.0.2.2")]), Ok(()));
    // One from the removed pool and one from the removed range.
    let outside = pools.outside();
    assert_eq!((outside.held, outside.draining), (2, 2));
    let by = Holder(2);
    let claim = pools.claim(address("10.0.1.1"), Holder(4));
    assert_eq!(claim, Err(Fault::Held { by }));
    // New addresses come first, then previously free ones; the claimed one and the edge's own are never leased.
    assert_eq!(take(&mut pools, &plain("a", 5)), "10.0.0.3");
    assert_eq!(take(&mut pools, &plain("a", 6)), "10.0.0.2");
    assert_eq!(take(&mut pools, &plain("a", 7)), "all addresses are held");
    let freed = [("10.0.0.1", 1), ("10.0.1.1", 2), ("10.0.2.1", 3)];
    for (freed, holder) in freed {
        assert!(pools.release(address(freed), Holder(holder)), "{freed}");
    }
    assert_eq!(pools.outside().draining, 0);
    assert_eq!(take(&mut pools, &plain("a", 8)), "10.0.2.1");
    // A pool's counters survive the reload.
    assert_eq!(pools.views().next().map(|view| view.taken), Some(4));
}

#[test]
fn pools_that_were_prepared_elsewhere_take_over_what_is_held() {
    let before = [spec("a", &["10.0.0.0/30"]), spec("b", &["10.0.1.0/30"])];
    let mut pools = pools(&before);
    let held = pools.take(&plain("a", 1)).unwrap();
    let other = pools.take(&plain("b", 2)).unwrap();
    let after = [
        spec("b", &["10.0.1.0/30"]),
        spec("a", &["10.0.0.0/29"]),
        spec("c", &["10.0.2.0/30"]),
    ];
    // The maker believes that "b" and "c" are there; "c" is not.
    let is_there = |spec: &Spec| *spec.name != *"a";
    let new = NewPools::new(after.to_vec(), Vec::new(), is_there).expect("faultless");
    pools.replace(new);
    assert_eq!(pools.holder(held), Some(Holder(1)));
    assert_eq!(pools.holder(other), Some(Holder(2)));
    let counts: Vec<_> = pools
        .views()
        .map(|pool| (pool.size, pool.used, pool.taken))
        .collect();
    assert_eq!(counts, [(4, 1, 1), (8, 1, 1), (4, 0, 0)]);
    assert!(pools.release(other, Holder(2)));
    assert_eq!(pools.take(&plain("c", 3)), Ok(address("10.0.2.0")));
}

#[test]
fn free_addresses_move_in_slices_and_end_up_as_in_one_piece() {
    let before = [Spec {
        sticky: true,
        ..spec("a", &["10.0.0.0/29"])
    }];
    let after = [Spec {
        sticky: true,
        ..spec("a", &["10.0.0.0/28"])
    }];
    let of = |user, holder| Request {
        pool: Some("a"),
        ..of(user, holder)
    };
    let made = || {
        let mut pools = pools(&before);
        let held = pools.take(&of("holds", 1)).unwrap();
        for (user, holder) in [("one", 2), ("two", 3), ("three", 4)] {
            let address = pools.take(&of(user, holder)).unwrap();
            assert!(pools.release(address, Holder(holder)));
        }
        (pools, held)
    };
    let (mut whole, held) = made();
    whole.reload(after.to_vec(), Vec::new()).expect("faultless");
    let (mut sliced, _) = made();
    sliced.replace(NewPools::new(after.to_vec(), Vec::new(), |_| false).expect("faultless"));
    assert_eq!(
        sliced.holder(held),
        Some(Holder(1)),
        "held addresses move at once"
    );
    let mut slices = 0;
    while sliced.work(1) {
        slices += 1;
    }
    assert!(slices >= 7 && !sliced.has_work() && sliced.take_gone().is_some());
    assert!(sliced.take_gone().is_none());
    for holder in 10..25 {
        let [one, other] = [&mut whole, &mut sliced].map(|pools| pools.take(&of("", holder)));
        assert_eq!(one, other, "{holder}");
    }
    // In the middle of it: a user gets its address, and an address that was leased meanwhile stays leased.
    let (mut early, _) = made();
    let two = address("10.0.0.2");
    early.replace(NewPools::new(after.to_vec(), Vec::new(), |_| false).expect("faultless"));
    assert_eq!(early.take(&of("two", 5)), Ok(two));
    let other = early.take(&of("new", 6)).unwrap();
    while early.work(2) {}
    assert_eq!(
        (early.holder(two), early.holder(other)),
        (Some(Holder(5)), Some(Holder(6)))
    );
    assert_eq!(early.take(&of("three", 7)), Ok(address("10.0.0.3")));
    let counts: Vec<_> = early.views().map(|pool| pool.used).collect();
    assert_eq!(counts, [4]);
}

#[test]
fn a_reload_remembers_whose_an_address_was() {
    let mut pools = pools(&[spec("a", &["10.0.0.1-10.0.0.3"])]);
    assert_eq!(take(&mut pools, &of("ann", 1)), "10.0.0.1");
    assert_eq!(take(&mut pools, &of("bob", 2)), "10.0.0.2");
    assert!(pools.release(address("10.0.0.1"), Holder(1)));
    let new = vec![spec("a", &["10.0.0.1-10.0.0.9"])];
    assert_eq!(pools.reload(new, Vec::new()), Ok(()));
    assert!(pools.release(address("10.0.0.2"), Holder(2)));
    assert_eq!(take(&mut pools, &plain("a", 3)), "10.0.0.4");
    assert_eq!(take(&mut pools, &of("bob", 4)), "10.0.0.2");
    assert_eq!(take(&mut pools, &of("ann", 5)), "10.0.0.1");
}

#[test]
fn a_reload_with_faults_changes_nothing() {
    let mut pools = pools(&[spec("a", &["10.0.0.1-10.0.0.2"])]);
    assert_eq!(take(&mut pools, &plain("a", 1)), "10.0.0.1");
    let own = vec![address("10.0.9.9")];
    let new = vec![spec("a", &["10.0.0.0/24"]), spec("b", &["10.0.9.9"])];
    assert_eq!(
        pools.reload(new, own).map_err(|faults| faults.len()),
        Err(1)
    );
    assert_eq!(pools.claim(address("10.0.9.9"), Holder(3)), Ok(()));
    let view = pools.views().next().expect("a pool");
    assert_eq!((view.size, view.used), (2, 1));
    assert_eq!(take(&mut pools, &plain("a", 2)), "10.0.0.2");
}

#[test]
fn each_fault_says_what_would_be_right() {
    let mut out = spec("d", &["10.0.3.0/24"]);
    out.excluded = vec![range("10.0.4.1")];
    let specs = [
        spec("a", &["10.0.0.0/24", "10.0.0.128-10.0.1.0"]),
        spec("a", &["10.0.0.7"]),
        spec("", &[]),
        out,
        spec("e", &["192.0.2.1"]),
        spec("f", &["126.0.0.0-128.0.0.0"]),
        spec("g", &["16.0.0.0/8"]),
    ];
    assert_eq!(
        faults(&specs, &[]),
        [
            "0.ranges: 10.0.0.128-10.0.1.0 overlaps 10.0.0.0/24 of pool \"a\"; let each address be of one range only",
            "1.name: \"a\" is the name of another pool; give each pool its own",
            "1.ranges: 10.0.0.7 overlaps 10.0.0.0/24 of pool \"a\"; let each address be of one range only",
            "2.name: has 0 octets; give it a name of 1 to 253 octets",
            "2.ranges: is empty; give at least one, such as \"10.0.0.0/24\"",
            "3.excluded: 10.0.4.1 is in none of the pool's ranges; leave it out, or correct it",
            "5.ranges: 126.0.0.0-128.0.0.0 has addresses of 127.0.0.0/8, which no host can have; leave those out",
            "5.ranges: bring all pools to 33555076 addresses; all together may have 16777216",
        ]
    );
    assert_eq!(
        faults(&[spec("e", &["192.0.2.1"])], &["192.0.2.1"]),
        ["0.ranges: are left out to the last address; leave some to give out"]
    );
}

#[test]
fn a_range_is_written_as_operators_write_it() {
    for (text, shown) in [
        ("10.0.0.0/24", "10.0.0.0/24"),
        ("10.0.0.0-10.0.0.255", "10.0.0.0/24"),
        ("10.0.0.1 - 10.0.0.255", "10.0.0.1-10.0.0.255"),
        ("10.0.0.7/32", "10.0.0.7"),
        ("0.0.0.0/0", "0.0.0.0/0"),
    ] {
        assert_eq!(range(text).to_string(), shown);
    }
    for (text, right) in [
        ("10.0.0.1/24", "did you mean \"10.0.0.0/24\"?"),
        ("10.0.0.9-10.0.0.1", "did you mean \"10.0.0.1-10.0.0.9\"?"),
        ("10.0.0.0/33", "from 0 to 32"),
        ("10.0.0", "write \"10.0.0.0/24\""),
        ("10.0.0.0/", "from 0 to 32"),
        ("", "write \"10.0.0.0/24\""),
    ] {
        let fault = text.parse::<Range>().expect_err(text);
        assert!(fault.contains(right), "{fault}");
    }
}

#[test]
fn a_million_sessions_come_and_go_and_no_address_is_given_twice_or_lost() {
    let mut sticky = spec("b", &["10.1.0.0-10.1.1.99", "10.2.0.0/25"]);
    sticky.sticky = true;
    let mut pools = pools(&[spec("a", &["10.0.0.0/23"]), sticky]);
    let mut held: Vec<(Ipv4Addr, Holder)> = Vec::new();
    let mut seen: HashMap<Ipv4Addr, Holder> = HashMap::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut connected = 0;
    while connected < 1_000_000 {
        if random(100) < 52 {
            let holder = Holder(random(1 << 30) as u64);
            let user = format!("user{}", random(2_000));
            let request = Request {
                pool: Some(["a", "b"][random(2)]),
                holder,
                user: user.as_bytes(),
                sticky: random(4) == 0,
            };
            let fixed = Ipv4Addr::from_bits(0x0a00_0000 | random(1 << 11) as u32);
            let got = match random(10) {
                0 => pools.claim(fixed, holder).map(|()| fixed),
                _ => pools.take(&request),
            };
            match got {
                Ok(address) => {
                    assert_eq!(seen.insert(address, holder), None, "{address} twice");
                    held.push((address, holder));
                    connected += 1;
                }
                Err(Fault::Held { by }) => assert_eq!(seen.get(&fixed), Some(&by)),
                Err(fault) => assert_eq!(fault, Fault::Full),
            }
        } else if !held.is_empty() {
            let (address, holder) = held.swap_remove(random(held.len()));
            assert!(pools.release(address, holder));
            seen.remove(&address);
        }
    }
    for (address, holder) in held {
        assert!(pools.release(address, holder));
    }
    for view in pools.views() {
        assert_eq!((view.used, view.free), (0, view.size), "{view:?}");
    }
    assert_eq!(pools.outside().held, 0);
}

/// A reference model of one pool, with plain lists that are searched linearly.
#[derive(Default)]
struct Model {
    free: VecDeque<u32>,
    remembered: VecDeque<u32>,
    held: BTreeMap<u32, u64>,
    /// The last user of each address.
    whose: BTreeMap<u32, u8>,
}

impl Model {
    fn last(&self, user: u8) -> Option<u32> {
        let mut all = self.whose.iter();
        all.find(|(_, whose)| **whose == user)
            .map(|(bits, _)| *bits)
    }

    fn take(&mut self, holder: u64, user: Option<u8>) -> Option<u32> {
        let last = user.and_then(|user| self.last(user));
        let found = last
            .filter(|bits| self.remembered.contains(bits))
            .or(self.free.front().copied())
            .or(self.remembered.front().copied())?;
        self.free.retain(|bits| *bits != found);
        self.remembered.retain(|bits| *bits != found);
        self.held.insert(found, holder);
        if last != Some(found) {
            self.whose.remove(&found);
        }
        if let Some(user) = user
            && last.is_none_or(|last| !self.held.contains_key(&last))
        {
            if let Some(last) = last {
                self.whose.remove(&last);
                self.remembered.retain(|bits| *bits != last);
                self.free.push_back(last);
            }
            self.whose.insert(found, user);
        }
        Some(found)
    }

    fn claim(&mut self, bits: u32, holder: u64) -> bool {
        if self.held.contains_key(&bits) {
            return false;
        }
        self.free.retain(|other| *other != bits);
        self.remembered.retain(|other| *other != bits);
        self.whose.remove(&bits);
        self.held.insert(bits, holder);
        true
    }

    fn exchange(&mut self, bits: u32, wish: u32, holder: u64) -> bool {
        if !self.free.contains(&wish) || !self.release(bits, holder) {
            return false;
        }
        self.free.retain(|other| *other != wish);
        self.held.insert(wish, holder);
        if let Some(user) = self.whose.remove(&bits) {
            self.remembered.retain(|other| *other != bits);
            self.free.push_back(bits);
            self.whose.insert(wish, user);
        }
        true
    }

    fn release(&mut self, bits: u32, holder: u64) -> bool {
        if self.held.get(&bits) != Some(&holder) {
            return false;
        }
        self.held.remove(&bits);
        match self.whose.contains_key(&bits) {
            true => self.remembered.push_back(bits),
            false => self.free.push_back(bits),
        }
        true
    }
}

#[derive(Clone, Debug)]
enum Op {
    Take(u64, Option<u8>),
    Claim(u8, u64),
    Release(u8, u64),
    Exchange(u8, u8, u64),
}

fn op() -> impl Strategy<Value = Op> {
    let place = 0_u8..12;
    let user = prop::option::of(0_u8..6);
    prop_oneof![
        5 => (0_u64..3, user).prop_map(|(holder, user)| Op::Take(holder, user)),
        1 => (place.clone(), 0_u64..3).prop_map(|(place, holder)| Op::Claim(place, holder)),
        6 => (place.clone(), 0_u64..3).prop_map(|(place, holder)| Op::Release(place, holder)),
        2 => (place.clone(), place, 0_u64..3)
            .prop_map(|(held, wish, holder)| Op::Exchange(held, wish, holder)),
    ]
}

proptest! {
    #[test]
    fn a_pool_gives_what_lists_that_are_walked_give(ops in prop::collection::vec(op(), 0..300)) {
        const FIRST: u32 = 0x0a00_0001;
        let mut pools = pools(&[spec("a", &["10.0.0.1-10.0.0.5", "10.0.0.6-10.0.0.12"])]);
        let mut model = Model {
            free: (FIRST..FIRST + 12).collect(),
            ..Model::default()
        };
        for op in ops {
            match op {
                Op::Take(holder, user) => {
                    let request = Request {
                        pool: None,
                        holder: Holder(holder),
                        user: &[user.unwrap_or_default()],
                        sticky: user.is_some(),
                    };
                    let got = pools.take(&request).ok().map(Ipv4Addr::to_bits);
                    prop_assert_eq!(got, model.take(holder, user));
                }
                Op::Claim(place, holder) => {
                    let bits = FIRST + u32::from(place);
                    let got = pools.claim(Ipv4Addr::from_bits(bits), Holder(holder)).is_ok();
                    prop_assert_eq!(got, model.claim(bits, holder));
                }
                Op::Release(place, holder) => {
                    let bits = FIRST + u32::from(place);
                    let got = pools.release(Ipv4Addr::from_bits(bits), Holder(holder));
                    prop_assert_eq!(got, model.release(bits, holder));
                }
                Op::Exchange(held, wish, holder) => {
                    let [held, wish] = [held, wish].map(|place| FIRST + u32::from(place));
                    let [old, new] = [held, wish].map(Ipv4Addr::from_bits);
                    let got = pools.exchange(old, new, Holder(holder));
                    prop_assert_eq!(got, model.exchange(held, wish, holder));
                }
            }
            let view = pools.views().next().expect("a pool");
            prop_assert_eq!(view.used as usize, model.held.len());
            prop_assert_eq!(view.remembered as usize, model.remembered.len());
            prop_assert_eq!(view.free as usize, model.free.len() + model.remembered.len());
        }
    }
}
