//! `headend doctor` on broken hosts, each in namespaces of its own: what it finds, and that the printed commands mend it.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Directory, HEADEND};

/// A process in its own mount and network namespaces; commands run beside it.
struct Host(Child);

impl Host {
    /// After the commands of `set_up`. `None` without the privilege, and then a test cannot check anything.
    fn new(set_up: &str) -> Option<Self> {
        // The pipe ends with the test, and the host with the pipe.
        let script = format!("set -e; ip link set lo up; {set_up}\necho ready; exec cat");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "sh", "-c", &script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let mut ready = [0; 6];
        let output = child.stdout.as_mut().unwrap();
        match std::io::Read::read_exact(output, &mut ready) {
            Ok(()) => Some(Self(child)),
            Err(_) => {
                child.wait().unwrap();
                // Root can set up anything, so then the set-up is wrong.
                assert!(!rustix::process::geteuid().is_root(), "{set_up}");
                None
            }
        }
    }

    /// Runs a line of a shell there.
    fn run(&self, line: &str) -> Output {
        let target = self.0.id().to_string();
        let mut command = Command::new("nsenter");
        command.args(["--target", &target, "--mount", "--net", "sh", "-c", line]);
        command.output().unwrap()
    }

    /// Runs a line that must succeed.
    fn must(&self, line: &str) {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {output:?}");
    }

    /// The findings of that command that have something to mend, but for the clock, which is no namespace's.
    fn findings(&self, command: &str) -> Vec<Found> {
        let output = self.run(command);
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("doctor/1"), "{command}: {text} {errors}");
        let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let found = rows.filter_map(|row: Value| {
            let text = |key: &str| Some(row[key].as_str()?.to_owned());
            Some(Found {
                state: text("state")?,
                check: text("check")?,
                text: text("finding")?,
                mend: text("mend")?,
            })
        });
        found.filter(|one| one.check != "clock").collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[derive(Debug)]
struct Found {
    state: String,
    check: String,
    text: String,
    mend: String,
}

/// Requires these findings, in order: state, check and a part of the sentence.
fn compare(found: &[Found], expected: &[(&str, &str, &str)]) {
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (one, (state, check, part)) in found.iter().zip(expected) {
        assert_eq!((&*one.state, &*one.check), (*state, *check), "{one:?}");
        assert!(one.text.contains(part), "{part:?} is not in {one:?}");
    }
}

const SUBSCRIBERS: &str = "[lns]\nlisten = [\"127.0.0.1:0\"]\n[ppp]\naddress = \"10.255.0.1\"\nauthenticate = \"nobody\"\n\
     [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n";

/// Commands that give a host small limits of buffers. Its own limits are shared by all namespaces, so files stand in for
/// them.
fn small_buffers(directory: &Directory) -> String {
    let mount = |name| {
        let file = directory.write(name, "212992\n");
        format!("mount --bind {} /proc/sys/net/core/{name}", file.display())
    };
    ["rmem_max", "wmem_max"].map(mount).join("; ")
}

/// The first broken host: a user without privileges, no device, no directory for the socket.
#[test]
fn a_host_without_privileges_and_device_is_mended_by_what_is_printed() {
    let directory = Directory::new();
    let binary = directory.path("headend");
    std::fs::copy(HEADEND, &binary).unwrap();
    let socket = directory.path("run/lns.sock");
    let config = format!("[control]\nsocket = {socket:?}\n{SUBSCRIBERS}[tun]\nname = \"inside\"\n");
    let config = directory.write("lns.toml", &config);
    let Some(host) = Host::new(&format!(
        "mount -t tmpfs -o mode=755 none /dev/net; sysctl -qw net.ipv4.ip_forward=1; \
         sysctl -qw net.ipv4.ping_group_range='0 100000'; sysctl -qw net.ipv6.conf.all.forwarding=1; {}",
        small_buffers(&directory)
    )) else {
        return;
    };
    let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let (binary, config) = (binary.display(), config.display());
    let doctor = format!("{nobody} {binary} doctor --json --config {config}");
    let found = host.findings(&doctor);
    compare(
        &found,
        &[
            (
                "fault",
                "capabilities",
                "nobody lacks CAP_NET_ADMIN, which [tun] needs",
            ),
            ("fault", "files", "of the control socket does not exist"),
            (
                "fault",
                "tun",
                "/dev/net/tun does not exist, though the kernel has its driver",
            ),
            ("advice", "buffers", "event.receive_buffer_bytes is"),
            ("advice", "buffers", "event.send_buffer_bytes is"),
        ],
    );
    // The capability also allows the buffers.
    for one in found.iter().filter(|one| one.state == "fault") {
        host.must(&one.mend);
    }
    compare(&host.findings(&doctor), &[]);
    // The daemon then does what the configuration asks for.
    let run = format!(
        "{nobody} {binary} run --config {config} & daemon=$!; \
         for try in $(seq 200); do {binary} show counters --socket {} > /dev/null 2>&1 && break; sleep 0.05; done; \
         ip -brief link show inside; kill $daemon; wait $daemon",
        socket.display()
    );
    let output = host.run(&run);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("inside"), "{output:?}");
}

/// The second broken host: few descriptors, small buffers, forwarding off, strict reverse paths.
#[test]
fn a_host_with_small_limits_and_no_forwarding_is_mended_by_what_is_printed() {
    let directory = Directory::new();
    let socket = directory.path("lns.sock");
    let bgp = "[bgp]\nasn = 65000\nrouter_id = \"192.0.2.1\"\nlisten = [\"127.0.0.1:1790\"]\n";
    let many =
        format!("[control]\nsocket = {socket:?}\n{SUBSCRIBERS}[tun]\nname = \"inside\"\n{bgp}");
    let many = directory.write("many.toml", &many);
    let Some(host) = Host::new(&format!(
        "mount -t tmpfs none /etc/sysctl.d; sysctl -qw net.ipv4.ip_forward=0; sysctl -qw net.ipv6.conf.all.forwarding=0; \
         sysctl -qw net.ipv4.conf.all.rp_filter=1; sysctl -qw net.ipv4.ping_group_range='0 100000'; \
         {}",
        small_buffers(&directory)
    )) else {
        return;
    };
    let few = "ulimit -n 40 && ";
    let doctor = |mended: &str| {
        let config = many.display();
        // The shell that starts headend runs the mend.
        host.findings(&format!(
            "{few}{mended}\n{HEADEND} doctor --json --config {config}"
        ))
    };
    let found = doctor("true");
    compare(
        &found,
        &[
            (
                "fault",
                "descriptors",
                "The limit of descriptors is 40; the configured sockets and neighbours need",
            ),
            ("fault", "forwarding", "net.ipv4.ip_forward is 0"),
            ("advice", "forwarding", "net.ipv6.conf.all.forwarding is 0"),
            ("advice", "forwarding", "rp_filter is strict"),
        ],
    );
    for one in &found[1..] {
        host.must(&one.mend);
    }
    let left = doctor(&found[0].mend);
    // Raising a hard limit takes CAP_SYS_RESOURCE, which a container's root lacks.
    let raised = host.run(&format!("{few}{}", found[0].mend));
    match raised.status.success() {
        true => compare(&left, &[]),
        false => compare(
            &left,
            &[("fault", "descriptors", "limit of descriptors is 40")],
        ),
    }
    let kept = host.run("cat /etc/sysctl.d/90-headend.conf");
    let kept = String::from_utf8(kept.stdout).unwrap();
    assert_eq!(
        kept,
        "net.ipv4.ip_forward=1\nnet.ipv6.conf.all.forwarding=1\n"
    );
    without_the_capability_buffers_are_small(&directory, &host);
}

/// Without `[tun]`, nothing gives the daemon CAP_NET_ADMIN, which would allow any buffer.
fn without_the_capability_buffers_are_small(directory: &Directory, host: &Host) {
    let socket = directory.path("lns.sock");
    let config = format!("[control]\nsocket = {socket:?}\n{SUBSCRIBERS}");
    let config = directory.write("plain.toml", &config);
    let config = config.display();
    let unprivileged =
        format!("capsh --drop=cap_net_admin -- -c '{HEADEND} doctor --json --config {config}'");
    let found = host.findings(&unprivileged);
    compare(
        &found,
        &[
            ("advice", "buffers", "but net.core.rmem_max grants 212992"),
            ("advice", "buffers", "but net.core.wmem_max grants 212992"),
        ],
    );
    for one in &found {
        host.must(&one.mend);
    }
    compare(&host.findings(&unprivileged), &[]);
}

/// Three hosts in a row; the wires have an MTU of 1,500 bytes.
const ROUTER: &str = "mount -t tmpfs none /run; mkdir /run/netns; for n in r b; do ip netns add $n; ip -n $n link set lo up; done; \
     ip link add w1 type veth peer name w1 netns r; ip -n r link add w2 type veth peer name w2 netns b; \
     ip addr add 10.1.0.1/24 dev w1; ip -n r addr add 10.1.0.2/24 dev w1; ip link set w1 up; ip -n r link set w1 up; \
     ip -n r addr add 10.2.0.2/24 dev w2; ip -n b addr add 10.2.0.1/24 dev w2; ip -n r link set w2 up; \
     ip -n b link set w2 up; ip route add default via 10.1.0.2; ip -n b route add default via 10.2.0.2; \
     ip netns exec r sysctl -qw net.ipv4.ip_forward=1; sysctl -qw net.ipv4.ping_group_range='0 100000'";

/// The third broken host: a narrow link behind a router, which reports it, and then does not.
#[test]
fn a_narrow_path_and_a_black_hole_are_told_apart_and_mended() {
    let directory = Directory::new();
    let socket = directory.path("lns.sock");
    let text = format!("[control]\nsocket = {socket:?}\n{SUBSCRIBERS}");
    let bgp = "[bgp]\nasn = 65000\nrouter_id = \"192.0.2.1\"\nlisten = [\"127.0.0.1:1790\"]\n\
               [[bgp.neighbor]]\naddress = \"10.2.0.1\"\nremote_asn = 65001\n";
    let config = directory.write("lns.toml", &text);
    let Some(host) = Host::new(ROUTER) else {
        return;
    };
    let doctor = format!(
        "{HEADEND} doctor --json --peer 10.2.0.1 --config {}",
        config.display()
    );
    compare(&host.findings(&doctor), &[]);
    // Writes the keys that the finding names.
    let mend = |one: &Found| {
        let keys = one.mend.strip_prefix("write ").unwrap();
        let keys = keys.strip_suffix(" into [ppp]").unwrap();
        let lines = format!("[ppp]\n{}\n", keys.replace(" and ", "\n"));
        directory.write("lns.toml", &text.replace("[ppp]\n", &lines));
    };

    host.must("ip -n r link set w2 mtu 1400");
    let found = host.findings(&doctor);
    let reported = "carries 1400 bytes (a router reports it), but ppp.path_mtu is 1500";
    compare(&found, &[("advice", "path", reported)]);
    assert_eq!(
        found[0].mend,
        "write path_mtu = 1400 and mru = 1362 into [ppp]"
    );
    mend(&found[0]);
    compare(&host.findings(&doctor), &[]);

    // The far end drops what its wire does not carry; the router does not know. A wire carries 4 bytes more, for a VLAN.
    directory.write("lns.toml", &format!("{text}{bgp}"));
    host.must("ip -n r link set w2 mtu 1500; ip -n b link set w2 mtu 1300; ip route flush cache");
    let found = host.findings(&doctor);
    let vanish = "carries 1304 bytes (larger ones vanish, and no router reports why)";
    compare(
        &found,
        &[("fault", "path", vanish), ("fault", "path", vanish)],
    );
    assert!(
        found[0].text.contains("larger packets are lost"),
        "{found:?}"
    );
    assert!(found[1].text.contains("a BGP session stalls"), "{found:?}");
    mend(&found[0]);
    compare(&host.findings(&doctor), &[]);
    directory.write("lns.toml", &format!("{text}{bgp}"));
    host.must(&found[1].mend);
    compare(&host.findings(&doctor), &[("fault", "path", vanish)]);
}
