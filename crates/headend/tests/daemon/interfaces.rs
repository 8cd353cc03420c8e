//! Tests an access concentrator whose PPPoE interface goes down, comes back, and changes its MAC address, with a PPPoE
//! client of ours as host.

use std::process::Command;

use reactor::namespace::{Namespace, veth};
use serde_json::Value;

use crate::support::{Daemon, Directory};

/// The sections of both ends. Three threads of the server share the sessions by their ids.
const SERVER: &str = "[event]\nshards = 3\n[pppoe]\n[[pppoe.interface]]\nname = \"wire\"\n\
                      [ppp]\naddress = \"10.64.255.1\"\nauthenticate = \"nobody\"\necho_interval_s = 1\n\
                      [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n[tun]\nname = \"inside\"\n";
const HOST: &str = "[client]\nname = \"ann\"\nsecret = \"sesame\"\npppoe = \"wire\"\n";

struct Street {
    /// The namespaces of the server and of its host.
    places: [Namespace; 2],
    server: Daemon,
}

impl Street {
    /// `None` without the privilege to make namespaces.
    fn new(directory: &Directory) -> Option<Self> {
        let places = [Namespace::new().ok()?, Namespace::new().ok()?];
        veth((&places[0], "wire"), (&places[1], "wire")).unwrap();
        for one in &places {
            one.netlink().unwrap().set_up("wire", true).unwrap();
        }
        Some(Self {
            server: Daemon::start_in(&places[0], directory, "server", SERVER),
            places,
        })
    }

    /// Starts the host, which has forgotten its session before.
    fn host(&self, directory: &Directory) -> Daemon {
        directory.private("host.toml");
        Daemon::start_in(&self.places[1], directory, "host", HOST)
    }

    fn ip(&self, line: &str) {
        let mut command = Command::new("ip");
        command.args(line.split(' '));
        let command = self.places[0].command(&mut command).unwrap();
        assert!(command.status().unwrap().success(), "ip {line}");
    }

    /// The only subscriber, once it is up and is another session than `before`.
    fn connected(&self, before: Option<&Value>) -> Value {
        let session = || {
            let rows = self.server.client().rows("show.subscribers");
            let up = rows.into_iter().find(|row| row["state"] == "up");
            up.map(|row| row["session"].clone())
        };
        let is_new = |one: &Value| Some(one) != before;
        let mut client = self.server.client();
        client.await_stats("the host is connected", |_| {
            session().is_some_and(|one| is_new(&one))
        });
        session().expect("it stays connected")
    }

    fn interface(&self) -> Value {
        self.server.client().rows("show.pppoe").remove(0)
    }

    fn tun(&self) -> u32 {
        let netlink = self.places[0].netlink().unwrap();
        netlink.index("inside").unwrap()
    }
}

/// The socket of each thread has a filter with the interface's MAC address, and the device of the inside has nothing to do
/// with the interface.
#[test]
fn an_interface_that_comes_back_is_served_by_all_threads() {
    let directory = Directory::new();
    let Some(street) = Street::new(&directory) else {
        return;
    };
    let mut host = street.host(&directory);
    let mut session = street.connected(None);
    let tun = street.tun();
    for number in 0..6_u8 {
        if number % 2 == 0 {
            // Nothing tells the sockets: they stay bound.
            street.ip(&format!(
                "link set wire address 02:00:00:00:01:{number:02x}"
            ));
        } else {
            street.ip("link set wire down");
            let mut client = street.server.client();
            client.await_stats("it is lost", |_| street.interface()["state"] == "lost");
            street.ip("link set wire up");
        }
        host.signal("KILL");
        host.wait();
        host = street.host(&directory);
        session = street.connected(Some(&session));
        assert_eq!(street.interface()["state"], "up");
    }
    assert_eq!(street.tun(), tun, "the device was not made again");
    let ended = street.server.client().rows("show.ended.subscribers");
    let is_gone = |row: &&Value| {
        let why = row["reason"].as_str();
        why.is_some_and(|why| why.contains("the interface is gone"))
    };
    assert_eq!(ended.iter().filter(is_gone).count(), 6, "{ended:?}");
}
