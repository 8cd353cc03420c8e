use std::path::PathBuf;
use std::sync::mpsc;

use super::*;
use crate::config;
use crate::start;
use crate::turn::Daemon;

/// A daemon of this thread, whose own watch is off, and its directory.
fn daemon(name: &str) -> (Daemon, PathBuf) {
    let directory =
        std::env::temp_dir().join(format!("headend-hangs-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let text = format!(
        "[control]\nsocket = {:?}\n[lac]\nlisten = [\"127.0.0.1:0\"]\n[event]\nhang_ms = 0\n",
        directory.join("x.sock")
    );
    let path = directory.join("headend.toml");
    std::fs::write(&path, text).unwrap();
    let settings = config::load(&path).unwrap();
    (start::start(&settings, &path).unwrap(), directory)
}

#[test]
fn a_handler_that_does_not_return_is_reported_meanwhile_and_once() {
    let (mut daemon, directory) = daemon("reported");
    assert!(daemon.hangs.is_none());
    let (tell, told) = mpsc::channel();
    let limit = Duration::from_millis(20);
    let pulse = daemon.core.reactor.pulse();
    let hangs = Hangs::start(pulse, limit, move |hang| tell.send(hang).unwrap()).unwrap();
    let control = daemon.handlers.control;
    for round in 0..2 {
        daemon.core.reactor.wait(Some(Instant::ZERO)).unwrap();
        daemon.core.reactor.enter(control, 0);
        let client = Source::Client(7).work();
        daemon.core.reactor.carry_out(client, "show.tunnels");
        // This handler returns only after it has been reported.
        let hang = told.iter().find(|hang| hang.handler == "control").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(told.try_recv().is_err(), "it is reported once");
        daemon.core.reactor.lap(control);
        assert_eq!(
            (&*hang.handler, &*hang.work),
            ("control", "control client 7: show.tunnels")
        );
        assert!(hang.so_far >= limit, "{:?} in round {round}", hang.so_far);
        // A container may hide the call.
        let call = hang.standing.call.as_deref();
        assert!(matches!(call, None | Some("futex")), "{hang:?}");
        let overrun = daemon.core.reactor.overruns().next_back();
        assert!(overrun.is_some_and(|overrun| overrun.handler == "control"));
    }
    drop(hangs);
    // The thread has ended when its channel is closed. On a busy machine it may have seen what came after a lap.
    assert!(told.iter().all(|hang| hang.handler == "after control"));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_watch_of_an_idle_daemon_sleeps() {
    let (mut daemon, directory) = daemon("idle");
    let pulse = daemon.core.reactor.pulse();
    let limit = Duration::from_millis(10);
    let _hangs = Hangs::start(Arc::clone(&pulse), limit, |_| {}).unwrap();
    // It wakes up for a turn, and sleeps again although nobody tells it to.
    for _ in 0..3 {
        daemon.core.reactor.pause(Duration::from_millis(1));
        daemon.core.reactor.wait(Some(Instant::ZERO)).unwrap();
        let waker = reactor::Waker::new().unwrap();
        let token = daemon
            .core
            .reactor
            .add(&waker, "test", u64::MAX, reactor::Interest::READ);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !pulse.is_asleep() {
                    std::thread::yield_now();
                }
                waker.wake();
            });
            daemon.core.reactor.wait(None).unwrap();
        });
        daemon.core.reactor.remove(token.unwrap());
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_report_says_whether_the_thread_is_busy_or_waits() {
    let ms = Duration::from_millis;
    let text = |cpu, state, call: Option<&str>, place: Option<&str>| {
        let hang = Hang {
            handler: "control".into(),
            work: "-".into(),
            so_far: ms(1_000),
            cpu,
            watched: ms(900),
            standing: Standing {
                state,
                call: call.map(str::to_owned),
                place: place.map(str::to_owned),
            },
        };
        hang.to_string()
    };
    assert_eq!(
        text(ms(880), Some('R'), None, None),
        "it keeps the processor busy"
    );
    assert_eq!(
        text(ms(1), Some('R'), None, None),
        "it waits for a processor"
    );
    assert_eq!(
        text(
            ms(1),
            Some('D'),
            Some("fsync"),
            Some("folio_wait_bit_common")
        ),
        "it waits for a device in fsync (folio_wait_bit_common)"
    );
    assert_eq!(
        text(ms(1), Some('S'), Some("write"), Some("pipe_write")),
        "it waits in write (pipe_write)"
    );
    assert_eq!(text(ms(0), None, None, None), "it waits");
}
