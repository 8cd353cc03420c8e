//! ioctls on network interfaces (netdevice(7)).

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::sys::check;
use crate::syscalls::{Call, enter};

/// An interface's name as ioctls take it.
fn named(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zeros is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= request.ifr_name.len() || bytes.contains(&0) {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// Creates the TUN device `name`, or a further queue of it, and attaches it to an open `/dev/net/tun`. Returns its
/// name, in which the kernel has replaced `%d` by a number.
pub(crate) fn attach_tun(
    file: BorrowedFd<'_>,
    name: &str,
    flags: libc::c_int,
) -> io::Result<String> {
    let mut request = named(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | flags) as libc::c_short;
    enter(Call::Ioctl)?;
    // SAFETY: `TUNSETIFF` reads and writes one `ifreq`.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    let octets = request.ifr_name.iter().map(|&octet| octet as u8);
    let octets: Vec<u8> = octets.take_while(|&octet| octet != 0).collect();
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// Sets the size of the header before each packet of a TUN device with offloads.
pub(crate) fn set_tun_header(file: BorrowedFd<'_>, octets: libc::c_int) -> io::Result<()> {
    enter(Call::Ioctl)?;
    // SAFETY: `TUNSETVNETHDRSZ` reads one `int`.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const octets) })
        .map(drop)
}

/// Sets which work the kernel may leave to the reader of a TUN device (`TUN_F_CSUM` and others); `EINVAL` if the
/// kernel does not know one of them.
pub(crate) fn set_tun_offloads(file: BorrowedFd<'_>, offloads: libc::c_uint) -> io::Result<()> {
    let offloads = libc::c_ulong::from(offloads);
    enter(Call::Ioctl)?;
    // SAFETY: `TUNSETOFFLOAD` takes a number.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, offloads) }).map(drop)
}

/// An interface's flags, such as `IFF_UP`.
pub(crate) fn flags(socket: BorrowedFd<'_>, name: &str) -> io::Result<libc::c_int> {
    let mut request = named(name)?;
    enter(Call::Ioctl)?;
    // SAFETY: `SIOCGIFFLAGS` reads the name of one `ifreq` and writes its flags, which are plain numbers.
    let flags = unsafe {
        check(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGIFFLAGS as _,
            &raw mut request,
        ))?;
        request.ifr_ifru.ifru_flags
    };
    Ok(libc::c_int::from(flags.cast_unsigned()))
}

/// An interface's MTU in bytes.
pub(crate) fn mtu(socket: BorrowedFd<'_>, name: &str) -> io::Result<u32> {
    let mut request = named(name)?;
    enter(Call::Ioctl)?;
    // SAFETY: `SIOCGIFMTU` reads the name of one `ifreq` and writes its MTU, a plain number.
    let mtu = unsafe {
        check(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGIFMTU as _,
            &raw mut request,
        ))?;
        request.ifr_ifru.ifru_mtu
    };
    Ok(u32::try_from(mtu).unwrap_or(0))
}

/// An interface's link type (`ARPHRD_ETHER` and others).
pub(crate) fn link_type(socket: BorrowedFd<'_>, name: &str) -> io::Result<u16> {
    hardware(socket, name).map(|(kind, _)| kind)
}

/// An interface's link type, and its address if that is a MAC address.
pub(crate) fn hardware(socket: BorrowedFd<'_>, name: &str) -> io::Result<(u16, [u8; 6])> {
    let mut request = named(name)?;
    enter(Call::Ioctl)?;
    // SAFETY: `SIOCGIFHWADDR` reads the name of one `ifreq` and writes a `sockaddr` of plain numbers.
    let address = unsafe {
        check(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGIFHWADDR as _,
            &raw mut request,
        ))?;
        request.ifr_ifru.ifru_hwaddr
    };
    let octets: [u8; 6] = core::array::from_fn(|at| address.sa_data[at] as u8);
    Ok((address.sa_family, octets))
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// `ETHTOOL_GCHANNELS`, and the words of `struct ethtool_channels`.
const GET_CHANNELS: u32 = 0x3c;
const CHANNELS_WORDS: usize = 9;

/// The number of an interface's queues to send by; an error if its driver does not tell.
pub(crate) fn send_queues(socket: BorrowedFd<'_>, name: &str) -> io::Result<u32> {
    let mut channels = [0_u32; CHANNELS_WORDS];
    channels[0] = GET_CHANNELS;
    let mut request = named(name)?;
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    // SAFETY: `SIOCETHTOOL` reads one `ifreq` and, by this command, writes the one `ethtool_channels` that it points
    // to, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    // `tx_count`, and `combined_count`.
    Ok(channels[6] + channels[8])
}

/// An ethtool command that reads or writes a number. Returns the number read, or the one given.
pub(crate) fn ethtool(
    socket: BorrowedFd<'_>,
    name: &str,
    command: u32,
    data: u32,
) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    let mut request = named(name)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    enter(Call::Ioctl)?;
    // SAFETY: `SIOCETHTOOL` reads one `ifreq` and, by the commands that callers give, reads or writes the one
    // `ethtool_value` that it points to, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    Ok(value.data)
}
