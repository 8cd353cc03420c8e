//! Tests `headend qos apply --watch`: an interface that comes back, another program, signals, the service manager.

use std::fs::{self, File};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::apply::Router;
use crate::support::until;

const POLICY: &str = "[link]\nup = \"9mbit\"\ndown = \"40mbit\"\n[[first]]\nname = \"ssh\"\nproto = \"tcp\"\nport = 22\n";

/// A router whose policy a process keeps in force.
struct Watched {
    router: Router,
    child: Child,
    manager: UnixDatagram,
}

impl Watched {
    fn start(name: &str, router: Router) -> Self {
        router.home.write("home.toml", POLICY);
        let manager = UnixDatagram::bind(router.home.path("notify")).unwrap();
        manager
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut command = router.headend(&["apply", "home.toml", "--wan", "wan0", "--watch"]);
        let errors = File::create(router.home.path("errors")).unwrap();
        command
            .env("NOTIFY_SOCKET", router.home.path("notify"))
            .env("WATCHDOG_USEC", "200000")
            .stdout(Stdio::null())
            .stderr(errors);
        let child = command.spawn().expect(name);
        Self {
            router,
            child,
            manager,
        }
    }

    /// Reads messages to the manager up to one that contains the text.
    fn reported(&self, text: &str) -> String {
        let mut octets = [0; 512];
        loop {
            let length = self.manager.recv(&mut octets).expect(text);
            let message = String::from_utf8_lossy(&octets[..length]).into_owned();
            if message.contains(text) {
                return message;
            }
        }
    }

    /// Waits for a line on standard error.
    fn says(&self, text: &str) {
        until(text, || {
            let errors = fs::read_to_string(self.router.home.path("errors")).unwrap();
            errors.contains(text).then_some(())
        });
    }

    fn has_rate(&self, rate: &str) {
        until(rate, || {
            let words = ["class", "show", "dev", "wan0", "classid", "1:1"];
            let output = self.router.command("tc", &words).output().unwrap();
            String::from_utf8_lossy(&output.stdout)
                .contains(rate)
                .then_some(())
        });
    }

    fn signal(&self, signal: Signal) {
        let process = Pid::from_child(&self.child);
        kill_process(process, signal).unwrap();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn queues_come_back_after_a_redial_and_after_another_program() {
    let router = Router::new("watch");
    let before = router.listed(&["wan0"]);
    let mut watched = Watched::start("watch", router);
    let router = &watched.router;
    watched.reported("STATUS=wan0: up 9Mbit, down 40Mbit");
    watched.reported("READY=1");
    watched.reported("WATCHDOG=1");
    let applied = router.listed(&["wan0", "ifb4wan0"]);
    // Another program.
    router.tc("qdisc del dev wan0 root");
    watched.says("wan0: qdisc htb 1: was missing");
    watched.has_rate("rate 9Mbit");
    assert_eq!(router.listed(&["wan0", "ifb4wan0"]), applied);
    // The first repair is followed by a pause.
    watched.says("the next repair is in 1 s at the earliest");
    router.tc("filter del dev wan0 parent 1: prio 1");
    router.tc("class change dev ifb4wan0 parent 1: classid 1:1 htb rate 3mbit");
    watched.says("the next repair is in 2 s at the earliest");
    let names = ["wan0", "ifb4wan0"];
    until("both", || (router.listed(&names) == applied).then_some(()));
    // A redial: the interface has another index.
    let mut netlink = router.namespace.netlink().unwrap();
    netlink.delete("wan0").unwrap();
    watched.says("wan0 is gone; waiting for it");
    netlink.add_veth("wan0", "far0", None).unwrap();
    netlink.set_up("wan0", true).unwrap();
    let index = netlink.index("wan0").unwrap();
    watched.says(&format!("wan0 is interface {index} now"));
    watched.has_rate("rate 9Mbit");
    // A new policy, a faulty one, the end.
    router
        .home
        .write("home.toml", &POLICY.replace("9mbit", "8mbit"));
    watched.signal(Signal::HUP);
    watched.reported("RELOADING=1");
    watched.reported("STATUS=wan0: up 8Mbit");
    watched.reported("READY=1");
    watched.has_rate("rate 8Mbit");
    router.home.write("home.toml", "[link]\nup = \"much\"\n");
    watched.signal(Signal::HUP);
    watched.says("the policy from before stays in force");
    watched.has_rate("rate 8Mbit");
    let second = router.refused(&["apply", "home.toml", "--wan", "wan0"]);
    assert!(second.contains("link.up"), "{second}");
    router.home.write("home.toml", POLICY);
    let second = router.refused(&["apply", "home.toml", "--wan", "wan0"]);
    assert!(second.contains("another headend qos"), "{second}");
    watched.signal(Signal::TERM);
    assert!(watched.child.wait().unwrap().success());
    watched.reported("STOPPING=1");
    assert_eq!(watched.router.listed(&["wan0"]), before);
    assert!(!watched.router.has("ifb4wan0"));
}

#[test]
fn an_interface_that_does_not_exist_yet_is_waited_for() {
    let router = Router::new("watch-late");
    let mut netlink = router.namespace.netlink().unwrap();
    netlink.delete("wan0").unwrap();
    let mut watched = Watched::start("watch-late", router);
    watched.reported("STATUS=wan0 does not exist yet; waiting for it");
    watched.reported("READY=1");
    netlink.add_veth("wan0", "far0", None).unwrap();
    watched.has_rate("rate 9Mbit");
    watched.reported("STATUS=wan0: up 9Mbit");
    watched.signal(Signal::INT);
    assert!(watched.child.wait().unwrap().success());
}
