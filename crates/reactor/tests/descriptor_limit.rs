//! Tests that near the descriptor limit new work is refused and existing work continues. This test has its own file
//! because the limit applies to the whole process.

use std::io::Write;
use std::os::unix::net::UnixStream;

use reactor::limits::DESCRIPTOR_RESERVE;
use reactor::{AddError, Interest, PollerKind, Reactor, StoreKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn near_the_limit_new_descriptors_are_refused_and_the_old_go_on() {
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(200),
            maximum: hard,
        },
    )
    .unwrap();
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap();
    let mut kept = Vec::new();
    let refused = loop {
        let (near, far) = UnixStream::pair().unwrap();
        match reactor.add(&near, "test", kept.len() as u64, Interest::READ) {
            Ok(token) => kept.push((near, far, token)),
            Err(error) => break error,
        }
    };
    let AddError::NearDescriptorLimit { open, limit } = refused else {
        panic!("{refused}")
    };
    assert_eq!(limit, 200);
    assert!(open > limit - DESCRIPTOR_RESERVE && open <= limit);
    let text = refused.to_string();
    assert!(
        text.contains("of at most 200 descriptors are open"),
        "{text}"
    );
    assert!(text.contains("32 are kept in reserve"), "{text}");
    assert_eq!(reactor.wait_stats().refused, 1);

    // Descriptors already watched are served as before.
    assert_eq!(reactor.watched(), kept.len());
    kept[0].1.write_all(b"x").unwrap();
    reactor.wait(None).unwrap();
    assert_eq!(reactor.next_ready().map(|r| r.token), Some(kept[0].2));

    // The operator can still connect.
    let (near, _far) = UnixStream::pair().unwrap();
    let token = reactor
        .add_from_reserve(&near, "control", 0, Interest::READ)
        .unwrap();
    reactor.remove(token).unwrap();
    drop(near);

    // Some descriptors close, which makes room again.
    for (near, far, token) in kept.drain(..10) {
        reactor.remove(token).unwrap();
        drop((near, far));
    }
    let (near, _far) = UnixStream::pair().unwrap();
    reactor.add(&near, "test", 0, Interest::READ).unwrap();

    // The limit is raised, which makes more room than before.
    reactor::limits::raise_descriptor_limit().unwrap();
    for _ in 0..100 {
        let (near, far) = UnixStream::pair().unwrap();
        let token = reactor.add(&near, "test", 0, Interest::READ).unwrap();
        kept.push((near, far, token));
    }
}
