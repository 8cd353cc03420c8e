//! Facts about the kernel and the daemon's user, mostly from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use rustix::thread::CapabilitySet;

use crate::host::{Capability, Device, Interface, Unit, User};

/// The settings that checks read.
const SYSCTLS: [&str; 14] = [
    "net.ipv4.ip_forward",
    "net.ipv6.conf.all.forwarding",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.conf.default.rp_filter",
    "net.ipv4.tcp_mtu_probing",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.netfilter.nf_conntrack_count",
    "net.netfilter.nf_conntrack_max",
    "net.ipv6.conf.all.disable_ipv6",
    "kernel.io_uring_disabled",
    "fs.nr_open",
];

/// The values of those settings that this kernel has.
pub(super) fn sysctls() -> BTreeMap<&'static str, String> {
    let read = |name: &'static str| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let text = fs::read_to_string(path).ok()?;
        Some((name, text.trim().to_owned()))
    };
    SYSCTLS.into_iter().filter_map(read).collect()
}

/// Opens the device from which TUN interfaces are made; this makes none.
pub(super) fn tun() -> Device {
    let opened = fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/net/tun");
    match opened {
        Ok(_) => Device::Opens,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Device::Missing,
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NODEV | Errno::NXIO) => Device::NoDriver,
            _ => Device::Refused(error),
        },
    }
}

/// Names of loaded modules, and of built-in drivers that have a device.
pub(super) fn modules() -> BTreeSet<String> {
    let mut loaded = first_words(&fs::read_to_string("/proc/modules").unwrap_or_default());
    // A driver that is built in is no module, but its device has a row.
    let misc = fs::read_to_string("/proc/misc").unwrap_or_default();
    loaded.extend(
        misc.lines()
            .filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned)),
    );
    loaded
}

fn first_words(text: &str) -> BTreeSet<String> {
    let words = text.lines().filter_map(|line| line.split(' ').next());
    words.map(str::to_owned).collect()
}

/// Names of the interfaces of this network namespace.
pub(super) fn interfaces() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let named = text.lines().filter_map(|line| line.split_once(':'));
    named.map(|(name, _)| name.trim().to_owned()).collect()
}

/// Those of the interfaces `names` that exist.
pub(super) fn ethernet(names: &[String]) -> BTreeMap<String, Interface> {
    /// The hardware type of Ethernet (`ARPHRD_ETHER`).
    const ETHERNET: &str = "1";
    /// The flag of an interface that is up (`IFF_UP`).
    const UP: u32 = 1;
    let read = |name: &String| {
        let of = |file: &str| fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok();
        let flags = of("flags")?;
        let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).ok()?;
        let interface = Interface {
            is_ethernet: of("type")?.trim() == ETHERNET,
            is_up: flags & UP != 0,
            mtu: of("mtu")?.trim().parse().ok()?,
        };
        Some((name.clone(), interface))
    };
    names.iter().filter_map(read).collect()
}

/// The hard limit of descriptors, to which the daemon raises its soft limit.
pub(super) fn descriptors(unit: Option<&Unit>) -> u64 {
    let own = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let Some(text) = unit.and_then(|unit| unit.get("LimitNOFILE")) else {
        return own;
    };
    // "soft:hard" or one value for both (systemd.exec(5)).
    let hard = text.rsplit(':').next().unwrap_or(text);
    match hard {
        "infinity" => u64::MAX,
        number => number.parse().unwrap_or(own),
    }
}

/// The user that runs the daemon, and what it may do there.
pub(super) fn user(given: Option<&str>, unit: Option<&Unit>) -> Result<User> {
    let of_unit = unit.map(|unit| unit.get("User").unwrap_or("root"));
    let own = rustix::process::geteuid().as_raw();
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let mut user = match given.or(of_unit) {
        Some(name) => named(name, &passwd, &groups)
            .with_context(|| format!("there is no user {name} in /etc/passwd"))
            .or_else(|error| match given {
                // The unit makes its user itself (DynamicUser=), or sysusers does later.
                None => Ok(User {
                    name: name.to_owned(),
                    uid: u32::MAX,
                    ..User::default()
                }),
                Some(_) => Err(error),
            })?,
        None => caller(own, &passwd),
    };
    user.capabilities = match unit {
        Some(unit) => of_the_unit(unit, user.uid),
        None if user.uid == own => effective(),
        None if user.uid == 0 => u64::MAX,
        None => of_the_file(),
    };
    Ok(user)
}

fn caller(uid: u32, passwd: &str) -> User {
    let own = passwd.lines().find(|line| {
        let id = line.split(':').nth(2);
        id.and_then(|id| id.parse().ok()) == Some(uid)
    });
    let name = own.and_then(|line| line.split(':').next());
    let mut groups: Vec<u32> = rustix::process::getgroups()
        .unwrap_or_default()
        .into_iter()
        .map(|gid| gid.as_raw())
        .collect();
    groups.push(rustix::process::getegid().as_raw());
    User {
        name: name.map_or_else(|| format!("user {uid}"), str::to_owned),
        uid,
        groups,
        capabilities: 0,
    }
}

/// A user of passwd(5), with its groups of group(5).
fn named(name: &str, passwd: &str, groups: &str) -> Option<User> {
    let line = passwd
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let uid = fields.next()?.parse().ok()?;
    let mut all: Vec<u32> = vec![fields.next()?.parse().ok()?];
    for line in groups.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if let [_, _, gid, members] = fields[..]
            && members.split(',').any(|member| member == name)
        {
            all.extend(gid.parse::<u32>());
        }
    }
    Some(User {
        name: name.to_owned(),
        uid,
        groups: all,
        capabilities: 0,
    })
}

fn effective() -> u64 {
    let own = rustix::thread::capabilities(None);
    // What the user may have, it can make effective.
    own.map_or(0, |sets| (sets.effective | sets.permitted).bits())
}

/// The capabilities of a process that the unit starts: its bounding set for root, its ambient set for others.
fn of_the_unit(unit: &Unit, uid: u32) -> u64 {
    let named = |key: &str| unit.get(key).map(capabilities_named);
    let bounding = named("CapabilityBoundingSet").unwrap_or(u64::MAX);
    let start = match uid {
        0 => u64::MAX,
        _ => named("AmbientCapabilities").unwrap_or(0),
    };
    start & bounding
}

/// The bits of the names in a list; a list that starts with `~` means all others (systemd.exec(5)).
pub(super) fn capabilities_named(list: &str) -> u64 {
    let (inverted, list) = match list.trim().strip_prefix('~') {
        Some(rest) => (true, rest),
        None => (false, list),
    };
    let known = [Capability::BindService, Capability::Admin, Capability::Raw];
    let of = |word: &str| {
        let found = known.iter().find(|one| one.name() == word);
        found.map_or(0, |one| one.bit())
    };
    let bits = list
        .split_whitespace()
        .map(of)
        .fold(0, |all, bit| all | bit);
    if inverted { !bits } else { bits }
}

/// The capabilities that the binary's file gives to every process that runs it (capabilities(7), `struct vfs_cap_data`).
fn of_the_file() -> u64 {
    let Ok(path) = std::env::current_exe() else {
        return 0;
    };
    let mut value = [0_u8; 64];
    let Ok(length) = rustix::fs::getxattr(&path, "security.capability", &mut value) else {
        return 0;
    };
    file_capabilities(&value[..length])
}

fn file_capabilities(value: &[u8]) -> u64 {
    let word = |at: usize| {
        let bytes = value.get(at..at + 4)?;
        Some(u64::from(u32::from_le_bytes(bytes.try_into().ok()?)))
    };
    // Magic, then permitted and inheritable, the low halves first.
    let permitted = word(4).unwrap_or(0) | word(12).unwrap_or(0) << 32;
    permitted & CapabilitySet::all().bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_its_own_group_and_those_that_list_it() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nheadend:x:990:980::/:/bin/false\n";
        let groups = "root:x:0:\nheadend:x:980:\nssl:x:101:www,headend\nother:x:7:headendx\n";
        let user = named("headend", passwd, groups).unwrap();
        assert_eq!((user.uid, user.groups), (990, vec![980, 101]));
        assert!(named("nobody", passwd, groups).is_none());
    }

    #[test]
    fn lists_of_capabilities_may_be_inverted() {
        let admin = Capability::Admin.bit();
        assert_eq!(capabilities_named("CAP_NET_ADMIN CAP_SYS_PTRACE"), admin);
        assert_eq!(capabilities_named("~CAP_NET_ADMIN") & admin, 0);
        assert_ne!(
            capabilities_named("~CAP_NET_ADMIN") & Capability::Raw.bit(),
            0
        );
        assert_eq!(capabilities_named(""), 0);
    }

    #[test]
    fn the_capabilities_of_a_file_are_its_permitted_set() {
        // `setcap cap_net_bind_service,cap_net_admin=ep`, as `getfattr -e hex` prints it.
        let value = [
            1, 0, 0, 2, 0, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        let both = Capability::Admin.bit() | Capability::BindService.bit();
        assert_eq!(file_capabilities(&value), both);
        assert_eq!(file_capabilities(&[]), 0);
    }
}
