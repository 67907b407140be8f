//! Netlink messages (RFC 3549): addresses, routes, links, MPTCP endpoints and socket diagnostics.

use crate::info::TcpInfo;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, netlink, socket_with};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::OwnedFd;

const REQUEST_ACK: u16 = 0x1 | 0x4;
const CREATE: u16 = 0x400;
const NLMSG_ERROR: u16 = 2;
const NESTED: u16 = 1 << 15;

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const INET: u8 = libc::AF_INET as u8;

/// A netlink message under construction: native byte order, attributes aligned to 4 bytes.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: u16, body: &[u8]) -> Message {
        let mut message = Message(vec![0; 16]);
        message.0[4..6].copy_from_slice(&kind.to_ne_bytes());
        message.0[6..8].copy_from_slice(&(REQUEST_ACK | flags).to_ne_bytes());
        message.0.extend(body);
        message
    }

    fn attribute(mut self, kind: u16, value: &[u8]) -> Message {
        self.0.extend((value.len() as u16 + 4).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn nest(self, kind: u16, inner: impl FnOnce(Message) -> Message) -> Message {
        let content = inner(Message(Vec::new())).0;
        self.attribute(kind | NESTED, &content)
    }

    /// Sends the message and waits for the reply.
    ///
    /// # Errors
    /// The error in the kernel's acknowledgement, if any.
    fn request(mut self, socket: &OwnedFd) -> io::Result<Vec<u8>> {
        let len = self.0.len() as u32;
        self.0[0..4].copy_from_slice(&len.to_ne_bytes());
        send(socket, &self.0, SendFlags::empty())?;
        let mut answer = vec![0; 8192];
        let (len, _) = recv(socket, &mut answer[..], RecvFlags::empty())?;
        answer.truncate(len);
        let error = answer.get(16..20).and_then(|bytes| bytes.try_into().ok());
        match error.map(i32::from_ne_bytes) {
            Some(error) if answer[4..6] == NLMSG_ERROR.to_ne_bytes() && error != 0 => {
                Err(io::Error::from_raw_os_error(-error))
            }
            _ => Ok(answer),
        }
    }
}

fn open(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?)
}

/// A routing socket (rtnetlink) of the network namespace in which it was opened.
pub(crate) struct RouteSocket(OwnedFd);

/// Settings of a network interface; `None` leaves the default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkSettings {
    pub(crate) mtu: Option<u32>,
    pub(crate) txqlen: Option<u32>,
    /// Maximum number of segments of a TSO packet.
    pub(crate) gso_max_segs: Option<u32>,
}

/// Metrics of a route that TCP uses; `None` leaves the default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteMetrics {
    pub(crate) initial_window: Option<u32>,
    pub(crate) min_rto_ms: Option<u32>,
    pub(crate) quick_ack: bool,
}

impl RouteSocket {
    pub(crate) fn open() -> io::Result<RouteSocket> {
        // NETLINK_ROUTE is protocol 0, the default.
        open(None).map(RouteSocket)
    }

    /// Applies the settings to an interface and brings it up.
    pub(crate) fn set_link_up(&self, index: u32, interface: LinkSettings) -> io::Result<()> {
        const UP: u32 = 1;
        const IFLA_MTU: u16 = 4;
        const IFLA_TXQLEN: u16 = 13;
        const IFLA_GSO_MAX_SEGS: u16 = 40;
        let mut body = vec![0; 4];
        body.extend(index.to_ne_bytes());
        body.extend(UP.to_ne_bytes());
        body.extend(UP.to_ne_bytes());
        let mut message = Message::new(RTM_NEWLINK, 0, &body);
        let LinkSettings { mtu, txqlen: queue, gso_max_segs: segments } = interface;
        for (kind, value) in [(IFLA_MTU, mtu), (IFLA_TXQLEN, queue), (IFLA_GSO_MAX_SEGS, segments)]
        {
            if let Some(value) = value {
                message = message.attribute(kind, &value.to_ne_bytes());
            }
        }
        message.request(&self.0).map(|_| ())
    }

    /// Adds an address with its network to the loopback interface; the host then receives packets
    /// for every address of that network.
    pub(crate) fn add_loopback_address(&self, address: [u8; 4], prefix: u8) -> io::Result<()> {
        const IFA_ADDRESS: u16 = 1;
        const IFA_LOCAL: u16 = 2;
        let mut body = vec![INET, prefix, 0, 0];
        body.extend(LOOPBACK.to_ne_bytes());
        let message = Message::new(RTM_NEWADDR, CREATE, &body);
        let message = message.attribute(IFA_LOCAL, &address).attribute(IFA_ADDRESS, &address);
        message.request(&self.0).map(|_| ())
    }

    /// Routes a network through an interface, with an algorithm for its connections if one is given.
    pub(crate) fn add_route(
        &self,
        network: [u8; 4],
        prefix: u8,
        index: u32,
        metrics: RouteMetrics,
        algorithm: Option<&str>,
    ) -> io::Result<()> {
        const MAIN: u8 = 254;
        const STATIC: u8 = 4;
        const UNICAST: u8 = 1;
        const SCOPE_LINK: u8 = 253;
        const RTA_DST: u16 = 1;
        const RTA_OIF: u16 = 4;
        const RTA_METRICS: u16 = 8;
        const RTAX_LOCK: u16 = 1;
        const RTAX_INITCWND: u16 = 11;
        const RTAX_RTO_MIN: u16 = 13;
        const RTAX_QUICKACK: u16 = 15;
        const RTAX_CC_ALGO: u16 = 16;
        let mut body = vec![INET, prefix, 0, 0, MAIN, STATIC, SCOPE_LINK, UNICAST];
        body.extend(0u32.to_ne_bytes());
        let message = Message::new(RTM_NEWROUTE, CREATE, &body)
            .attribute(RTA_DST, &network)
            .attribute(RTA_OIF, &index.to_ne_bytes());
        let quick_ack = metrics.quick_ack.then_some(1);
        // tcp_rto_min reads a locked metric only, tcp_init_cwnd and tcp_in_quickack_mode any.
        let locked = metrics.min_rto_ms.map(|_| 1 << RTAX_RTO_MIN);
        let metrics = [
            (RTAX_LOCK, locked),
            (RTAX_INITCWND, metrics.initial_window),
            (RTAX_RTO_MIN, metrics.min_rto_ms),
            (RTAX_QUICKACK, quick_ack),
        ];
        let metrics = metrics.into_iter().filter_map(|(kind, value)| Some((kind, value?)));
        let message = message.nest(RTA_METRICS, |nested| {
            let nested = metrics
                .fold(nested, |nested, (kind, value)| nested.attribute(kind, &value.to_ne_bytes()));
            match algorithm {
                Some(name) => nested.attribute(RTAX_CC_ALGO, name.as_bytes()),
                None => nested,
            }
        });
        message.request(&self.0).map(|_| ())
    }
}

/// Index of the loopback interface in every network namespace.
pub(crate) const LOOPBACK: u32 = 1;

/// The MPTCP path manager of the network namespace in which it was opened.
pub(crate) struct PathManager {
    socket: OwnedFd,
    family: u16,
}

impl PathManager {
    pub(crate) fn open() -> io::Result<PathManager> {
        const GENL_ID_CTRL: u16 = 16;
        const CTRL_CMD_GETFAMILY: u8 = 3;
        const CTRL_ATTR_FAMILY_ID: u16 = 1;
        const CTRL_ATTR_FAMILY_NAME: u16 = 2;
        let socket = open(Some(netlink::GENERIC))?;
        let message = Message::new(GENL_ID_CTRL, 0, &[CTRL_CMD_GETFAMILY, 1, 0, 0]);
        let answer = message.attribute(CTRL_ATTR_FAMILY_NAME, b"mptcp_pm\0").request(&socket)?;
        let family = find_attribute(&answer[20.min(answer.len())..], CTRL_ATTR_FAMILY_ID);
        let family = family.and_then(|value| value.get(..2)?.try_into().ok());
        let family = family.map(u16::from_ne_bytes).ok_or(io::ErrorKind::NotFound)?;
        // Discard the acknowledgement that follows the reply.
        let _ = recv(&socket, &mut [0; 256], RecvFlags::DONTWAIT);
        Ok(PathManager { socket, family })
    }

    /// Sets the maximum number of subflows of a connection, not counting the first.
    pub(crate) fn set_limit(&self, subflows: u32) -> io::Result<()> {
        const SET_LIMITS: u8 = 5;
        const RCV_ADD_ADDRS: u16 = 2;
        const SUBFLOWS: u16 = 3;
        let message = Message::new(self.family, 0, &[SET_LIMITS, 1, 0, 0])
            .attribute(RCV_ADD_ADDRS, &0u32.to_ne_bytes())
            .attribute(SUBFLOWS, &subflows.to_ne_bytes());
        message.request(&self.socket).map(|_| ())
    }

    /// Adds an address from which each connection opens an additional subflow.
    pub(crate) fn add_endpoint(&self, id: u8, address: [u8; 4]) -> io::Result<()> {
        const ADD_ADDR: u8 = 1;
        const ATTR_ADDR: u16 = 1;
        const ADDR_FAMILY: u16 = 1;
        const ADDR_ID: u16 = 2;
        const ADDR_ADDR4: u16 = 3;
        const ADDR_FLAGS: u16 = 6;
        const SUBFLOW: u32 = 2;
        let message = Message::new(self.family, 0, &[ADD_ADDR, 1, 0, 0]);
        let message = message.nest(ATTR_ADDR, |nested| {
            nested
                .attribute(ADDR_FAMILY, &u16::from(INET).to_ne_bytes())
                .attribute(ADDR_ID, &[id])
                .attribute(ADDR_ADDR4, &address)
                .attribute(ADDR_FLAGS, &SUBFLOW.to_ne_bytes())
        });
        message.request(&self.socket).map(|_| ())
    }
}

/// Socket diagnostics of the network namespace in which it was opened (sock_diag(7)).
pub(crate) struct SockDiag(OwnedFd);

impl SockDiag {
    pub(crate) fn open() -> io::Result<SockDiag> {
        open(Some(netlink::SOCK_DIAG)).map(SockDiag)
    }

    /// `TCP_INFO` of all TCP sockets except listeners.
    pub(crate) fn dump(&self) -> io::Result<Vec<TcpInfo>> {
        const SOCK_DIAG_BY_FAMILY: u16 = 20;
        const DUMP: u16 = 0x300;
        const INET_DIAG_INFO: u16 = 2;
        const NLMSG_DONE: u16 = 3;
        const MESSAGE: usize = 16;
        const DIAG: usize = 72;
        /// All states except LISTEN.
        const STATES: u32 = 0xfff & !(1 << 10);
        let mut body = vec![INET, libc::IPPROTO_TCP as u8, 1 << (INET_DIAG_INFO - 1), 0];
        body.extend(STATES.to_ne_bytes());
        body.resize(56, 0);
        let mut message = Message::new(SOCK_DIAG_BY_FAMILY, DUMP, &body);
        let len = message.0.len() as u32;
        message.0[0..4].copy_from_slice(&len.to_ne_bytes());
        send(&self.0, &message.0, SendFlags::empty())?;
        let mut infos = Vec::new();
        let mut room = vec![0; 1 << 16];
        loop {
            let (len, _) = recv(&self.0, &mut room[..], RecvFlags::empty())?;
            let mut rest = &room[..len];
            while let Some((head, _)) = rest.split_at_checked(MESSAGE) {
                let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
                let kind = u16::from_ne_bytes([head[4], head[5]]);
                if kind == NLMSG_DONE || kind == NLMSG_ERROR || len < MESSAGE {
                    return Ok(infos);
                }
                let attributes = rest.get(MESSAGE + DIAG..len.min(rest.len()));
                let info = attributes.and_then(|bytes| find_attribute(bytes, INET_DIAG_INFO));
                infos.extend(info.map(TcpInfo::from_bytes));
                rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// Value of the first attribute of a kind.
fn find_attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    while let [a, b, c, d, rest @ ..] = attributes {
        let len = usize::from(u16::from_ne_bytes([*a, *b]));
        let value = rest.get(..len.checked_sub(4)?)?;
        if u16::from_ne_bytes([*c, *d]) & !NESTED == kind {
            return Some(value);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_aligned_and_found_again() {
        let message = Message::new(1, 0, &[]).attribute(7, &[1, 2, 3]).attribute(9, &[4; 4]);
        assert_eq!(message.0.len(), 16 + 8 + 8);
        assert_eq!(find_attribute(&message.0[16..], 9), Some(&[4; 4][..]));
        assert_eq!(find_attribute(&message.0[16..], 7), Some(&[1, 2, 3][..]));
        assert_eq!(find_attribute(&message.0[16..], 8), None);
    }

    #[test]
    fn an_attribute_longer_than_its_message_ends_the_search() {
        assert_eq!(find_attribute(&[200, 0, 7, 0, 1], 7), None);
        assert_eq!(find_attribute(&[0, 0, 7, 0], 7), None);
    }
}
