//! Tests that every poller behaves the same with every descriptor store.

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use base::{Duration, Instant};
use reactor::{AddError, Interest, PollerKind, Reactor, Ready, StoreKind, Token, clock};
use rustix::event::{EventfdFlags, eventfd};

/// Descriptor numbers are shared by the process, and some tests need theirs to stay closed.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `test` with each poller that the kernel allows and each store.
fn each(test: impl Fn(&mut Reactor)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for poller in PollerKind::ALL {
        for store in StoreKind::ALL {
            match Reactor::new(poller, store) {
                Ok(mut reactor) => {
                    println!("with {poller} and a {store}");
                    test(&mut reactor);
                }
                Err(error) => {
                    assert_eq!(poller, PollerKind::IoUring, "{error}");
                    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported, "{error}");
                }
            }
        }
    }
}

/// Two connected non-blocking sockets.
fn pair() -> (UnixStream, UnixStream) {
    let (a, b) = UnixStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a, b)
}

fn soon() -> Option<Instant> {
    Some(clock::now() + Duration::from_millis(2))
}

/// A timeout that only a fault reaches.
fn at_last() -> Option<Instant> {
    Some(clock::now() + Duration::from_secs(60))
}

fn turn(reactor: &mut Reactor, deadline: Option<Instant>) -> Vec<Ready> {
    reactor.wait(deadline).unwrap();
    std::iter::from_fn(|| reactor.next_ready()).collect()
}

fn tokens(ready: &[Ready]) -> Vec<Token> {
    let mut tokens: Vec<_> = ready.iter().map(|r| r.token).collect();
    tokens.sort_unstable_by_key(|t| t.fd());
    tokens
}

#[test]
fn a_descriptor_with_data_is_reported_with_its_owner_and_number() {
    each(|reactor| {
        let (a, mut b) = pair();
        let token = reactor.add(&a, "test", 42, Interest::READ).unwrap();
        assert_eq!(turn(reactor, soon()), []);
        b.write_all(b"x").unwrap();
        let ready = turn(reactor, at_last());
        assert_eq!(tokens(&ready), [token]);
        assert_eq!((ready[0].owner, ready[0].user), ("test", 42));
        assert!(ready[0].readiness.readable() && !ready[0].readiness.writable());
    });
}

#[test]
fn a_wait_without_events_never_ends_before_its_deadline() {
    each(|reactor| {
        let (a, _b) = pair();
        reactor.add(&a, "test", 0, Interest::READ).unwrap();
        for micros in [1, 50, 999, 1_001, 2_500] {
            let deadline = clock::now() + Duration::from_micros(micros);
            let now = reactor.wait(Some(deadline)).unwrap();
            assert!(now >= deadline, "{now:?} < {deadline:?}");
            assert_eq!(reactor.next_ready(), None);
        }
    });
}

#[test]
fn a_deadline_in_the_past_still_collects_what_is_ready() {
    each(|reactor| {
        let (a, mut b) = pair();
        let token = reactor.add(&a, "test", 0, Interest::READ).unwrap();
        assert_eq!(turn(reactor, Some(Instant::ZERO)), []);
        b.write_all(b"x").unwrap();
        assert_eq!(tokens(&turn(reactor, Some(Instant::ZERO))), [token]);
    });
}

#[test]
fn readiness_is_by_level_until_the_data_has_been_read() {
    each(|reactor| {
        let (mut a, mut b) = pair();
        let token = reactor.add(&a, "test", 0, Interest::READ).unwrap();
        b.write_all(b"xyz").unwrap();
        let mut byte = [0];
        for _ in 0..3 {
            assert_eq!(tokens(&turn(reactor, at_last())), [token]);
            a.read_exact(&mut byte).unwrap();
        }
        assert_eq!(turn(reactor, soon()), []);
        b.write_all(b"x").unwrap();
        assert_eq!(tokens(&turn(reactor, at_last())), [token]);
    });
}

#[test]
fn a_drained_descriptor_is_reported_for_new_data_alone() {
    each(|reactor| {
        let (mut a, mut b) = pair();
        let token = reactor.add(&a, "test", 0, Interest::READ).unwrap();
        let mut buffer = [0; 8];
        for _ in 0..3 {
            b.write_all(b"xyz").unwrap();
            assert_eq!(tokens(&turn(reactor, at_last())), [token]);
            assert_eq!(a.read(&mut buffer).unwrap(), 3);
            assert!(a.read(&mut buffer).is_err());
            reactor.drained(token);
            // A wake-up already in progress may still be reported once.
            turn(reactor, soon());
            reactor.drained(token);
            assert_eq!(turn(reactor, soon()), []);
        }
    });
}

#[test]
fn events_not_taken_are_reported_again() {
    each(|reactor| {
        let (a, mut b) = pair();
        let token = reactor.add(&a, "test", 0, Interest::READ).unwrap();
        b.write_all(b"x").unwrap();
        reactor.wait(at_last()).unwrap();
        reactor.wait(at_last()).unwrap();
        assert_eq!(reactor.next_ready().map(|r| r.token), Some(token));
    });
}

#[test]
fn interest_can_change_to_writing_to_nothing_and_back() {
    each(|reactor| {
        let (a, mut b) = pair();
        b.write_all(b"x").unwrap();
        let token = reactor.add(&a, "test", 0, Interest::WRITE).unwrap();
        let found = |reactor: &mut Reactor| {
            let ready = turn(reactor, soon());
            ready
                .first()
                .map(|r| (r.readiness.readable(), r.readiness.writable()))
        };
        assert_eq!(found(reactor), Some((false, true)));
        reactor.set_interest(token, Interest::READ).unwrap();
        assert_eq!(found(reactor), Some((true, false)));
        reactor.set_interest(token, Interest::NONE).unwrap();
        assert_eq!(found(reactor), None);
        reactor.set_interest(token, Interest::BOTH).unwrap();
        assert_eq!(found(reactor), Some((true, true)));
        reactor.set_interest(token, Interest::NONE).unwrap();
        drop(b);
        assert_eq!(
            found(reactor),
            None,
            "nothing is watched, not even a hangup"
        );
        assert!(reactor.remove(token).is_some());
        assert!(reactor.set_interest(token, Interest::READ).is_err());
    });
}

#[test]
fn interest_changed_within_a_batch_holds_for_that_batch() {
    each(|reactor| {
        let (a, mut b) = pair();
        let token = reactor.add(&a, "test", 0, Interest::READ).unwrap();
        b.write_all(b"x").unwrap();
        reactor.wait(at_last()).unwrap();
        reactor.set_interest(token, Interest::NONE).unwrap();
        assert_eq!(reactor.next_ready(), None);
    });
}

#[test]
fn a_descriptor_added_as_unwatched_can_be_watched_later() {
    each(|reactor| {
        let (a, mut b) = pair();
        b.write_all(b"x").unwrap();
        let token = reactor.add(&a, "test", 0, Interest::NONE).unwrap();
        assert_eq!(turn(reactor, soon()), []);
        reactor.set_interest(token, Interest::READ).unwrap();
        assert_eq!(tokens(&turn(reactor, at_last())), [token]);
    });
}

#[test]
fn a_closed_peer_is_reported_as_readable() {
    each(|reactor| {
        let (mut a, b) = pair();
        let token = reactor.add(&a, "test", 0, Interest::READ).unwrap();
        drop(b);
        let ready = turn(reactor, at_last());
        assert_eq!(tokens(&ready), [token]);
        assert!(ready[0].readiness.readable());
        assert_eq!(a.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn what_was_removed_in_the_middle_of_a_batch_is_not_delivered() {
    each(|reactor| {
        let ((a, mut b), (c, mut d)) = (pair(), pair());
        let first = reactor.add(&a, "test", 0, Interest::READ).unwrap();
        let second = reactor.add(&c, "test", 1, Interest::READ).unwrap();
        b.write_all(b"x").unwrap();
        d.write_all(b"x").unwrap();
        reactor.wait(at_last()).unwrap();
        let delivered = reactor.next_ready().unwrap().token;
        let other = if delivered == first { second } else { first };
        assert!(reactor.remove(other).is_some());
        assert!(reactor.remove(other).is_none());
        assert_eq!(reactor.next_ready(), None);
        assert!(reactor.is_current(delivered) && !reactor.is_current(other));
        assert_eq!(reactor.wait_stats().stale, 1);
        assert_eq!(tokens(&turn(reactor, at_last())), [delivered]);
    });
}

/// Closes `old` and opens a silent stream that gets its number.
fn reuse_number(old: UnixStream) -> (OwnedFd, UnixStream) {
    let (silent, other) = pair();
    let wanted = old.as_raw_fd();
    let mut target = OwnedFd::from(old);
    // Closes the old file and opens the new one under its number in one step, as other
    // threads of this process open files too.
    rustix::io::dup2(&silent, &mut target).unwrap();
    assert_eq!(target.as_raw_fd(), wanted);
    (target, other)
}

#[test]
fn a_stale_event_of_a_closed_and_reused_number_is_never_delivered() {
    each(|reactor| {
        let ((a, mut b), (c, mut d)) = (pair(), pair());
        let first = reactor.add(&a, "old", 0, Interest::READ).unwrap();
        let second = reactor.add(&c, "old", 1, Interest::READ).unwrap();
        b.write_all(b"x").unwrap();
        d.write_all(b"x").unwrap();
        reactor.wait(at_last()).unwrap();
        let delivered = reactor.next_ready().unwrap().token;
        // The other event has already been fetched.
        let (kept, closed, old) = if delivered == first {
            (a, c, second)
        } else {
            (c, a, first)
        };
        reactor.remove(old).unwrap();
        let (fd, mut peer) = reuse_number(closed);
        let new = reactor.add(&fd, "new", 2, Interest::READ).unwrap();
        assert_eq!(new.fd(), old.fd());
        assert_eq!(reactor.next_ready(), None);
        assert!(!reactor.is_current(old) && reactor.is_current(new));
        assert!(
            reactor.remove(old).is_none(),
            "an old token removes nothing"
        );

        drop(kept);
        reactor.remove(delivered);
        assert_eq!(turn(reactor, soon()), []);
        peer.write_all(b"x").unwrap();
        let ready = turn(reactor, at_last());
        assert_eq!((tokens(&ready), ready[0].owner), (vec![new], "new"));
    });
}

#[test]
fn a_number_reused_without_removal_gets_nothing_of_its_predecessor() {
    each(|reactor| {
        let (a, mut b) = pair();
        let old = reactor.add(&a, "old", 0, Interest::READ).unwrap();
        b.write_all(b"x").unwrap();
        reactor.wait(at_last()).unwrap();
        let (fd, mut peer) = reuse_number(a);
        let new = reactor.add(&fd, "new", 1, Interest::READ).unwrap();
        assert_eq!(new.fd(), old.fd());
        assert_eq!(reactor.next_ready(), None);
        assert_eq!(turn(reactor, soon()), []);
        assert_eq!(reactor.watched(), 1);
        peer.write_all(b"x").unwrap();
        assert_eq!(tokens(&turn(reactor, at_last())), [new]);
    });
}

#[test]
fn an_address_can_be_bound_again_as_soon_as_its_socket_was_removed_and_closed() {
    each(|reactor| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let token = reactor.add(&socket, "test", 0, Interest::READ).unwrap();
        assert_eq!(turn(reactor, Some(Instant::ZERO)), []);
        reactor.remove(token).unwrap();
        drop(socket);
        UdpSocket::bind(address).unwrap();
    });
}

fn counter(value: u32) -> OwnedFd {
    eventfd(value, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap()
}

fn add_counter(reactor: &mut Reactor, fd: &impl AsFd, user: u64) -> Token {
    match reactor.add(fd, "counter", user, Interest::READ) {
        Ok(token) => token,
        Err(AddError::Io(error)) => panic!("{error}"),
        Err(full) => panic!("{full}"),
    }
}

#[test]
fn the_few_that_are_ready_are_found_among_many() {
    each(|reactor| {
        let idle: Vec<_> = (0..300).map(|_| counter(0)).collect();
        let mut all = Vec::new();
        let mut expected = Vec::new();
        for (i, fd) in idle.iter().enumerate() {
            all.push(add_counter(reactor, fd, i as u64));
        }
        for &i in &[0_usize, 17, 150, 299] {
            rustix::io::write(&idle[i], &1_u64.to_ne_bytes()).unwrap();
            expected.push(all[i]);
        }
        expected.sort_unstable_by_key(|t| t.fd());
        assert_eq!(tokens(&turn(reactor, at_last())), expected);
        let stats = reactor.wait_stats();
        assert_eq!((stats.waits, stats.watched, stats.ready), (1, 300, 4));

        let mut page = Vec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            next = reactor.descriptors(from, 7, &mut page);
        }
        assert_eq!(page.len(), 300);
        assert!(page.is_sorted_by_key(|info| info.token.fd()));
        let woken: Vec<_> = page
            .iter()
            .filter(|i| i.wakeups == 1)
            .map(|i| i.token)
            .collect();
        assert_eq!(woken, expected);
        assert!(
            page.iter()
                .all(|i| i.owner == "counter" && i.interest == Interest::READ)
        );
    });
}

/// More than one wait's budget, and more than io_uring's completion queue holds.
#[test]
fn none_of_very_many_ready_descriptors_is_left_out() {
    reactor::limits::raise_descriptor_limit().unwrap();
    each(|reactor| {
        if reactor.store() == StoreKind::List {
            return; // quadratic, which is what the list is kept to show
        }
        let counters: Vec<_> = (0..6_000).map(|_| counter(1)).collect();
        let mut all = Vec::new();
        for (i, fd) in counters.iter().enumerate() {
            all.push(add_counter(reactor, fd, i as u64));
        }
        let mut left = counters.len();
        // io_uring delivers at least 20 events per wait.
        for _ in 0..6_000 / 20 {
            reactor.wait(Some(Instant::ZERO)).unwrap();
            while let Some(ready) = reactor.next_ready() {
                let fd = &counters[ready.user as usize];
                if rustix::io::read(fd, &mut [0_u8; 8]).is_ok() {
                    left -= 1;
                }
                reactor.drained(ready.token);
            }
        }
        assert_eq!(left, 0);
        assert_eq!(turn(reactor, soon()), []);

        // Removing all of them at once does not disturb the rest either.
        let stays = counter(0);
        let token = add_counter(reactor, &stays, 0);
        for token in all {
            reactor.remove(token).unwrap();
        }
        assert_eq!(turn(reactor, soon()), []);
        rustix::io::write(&stays, &1_u64.to_ne_bytes()).unwrap();
        assert_eq!(tokens(&turn(reactor, at_last())), [token]);
    });
}

#[test]
fn a_descriptor_closed_without_removal_does_not_make_the_loop_spin() {
    each(|reactor| {
        let (a, b) = pair();
        reactor.add(&a, "test", 0, Interest::READ).unwrap();
        let (kept, mut peer) = pair();
        let token = reactor.add(&kept, "test", 1, Interest::READ).unwrap();
        drop(a);
        turn(reactor, soon());
        let before = reactor.wait_stats().waits;
        let deadline = soon();
        while turn(reactor, deadline).is_empty() && clock::now() < deadline.unwrap() {}
        assert!(reactor.wait_stats().waits - before <= 2);
        peer.write_all(b"x").unwrap();
        assert_eq!(tokens(&turn(reactor, at_last())), [token]);
        drop(b);
    });
}

#[test]
fn the_accounts_add_up() {
    each(|reactor| {
        let work = reactor.handler("work");
        assert_eq!(reactor.handler("work"), work);
        let (a, mut b) = pair();
        reactor.add(&a, "test", 0, Interest::READ).unwrap();
        b.write_all(b"x").unwrap();
        let mut laps = Duration::ZERO;
        for _ in 0..10 {
            let now = reactor.wait(at_last()).unwrap();
            while reactor.next_ready().is_some() {}
            laps = laps + reactor.lap(work).since(now);
        }
        reactor.record_lateness("test", Duration::from_micros(3));
        let stats = reactor.wait_stats();
        assert_eq!((stats.waits, stats.ready, stats.empty), (10, 10, 0));
        assert_eq!(stats.ready_ratio(), 1.0);
        assert!(stats.uptime >= stats.waited + laps);
        let handler = reactor.handler_stats()[0];
        assert_eq!(
            (handler.name, handler.calls, handler.total),
            ("work", 10, laps)
        );
        assert!(handler.longest >= handler.mean());
        assert_eq!(reactor.lateness().count(), 1);
    });
}
