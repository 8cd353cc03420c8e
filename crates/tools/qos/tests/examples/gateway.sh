#!/bin/sh
# A home gateway: SSH and names first, mail and web share the rest, downloads are shaped on an ifb.
WAN=eth0
UP=9400kbit
DOWN=47mbit
modprobe ifb
tc qdisc del dev $WAN root 2>/dev/null
tc qdisc add dev $WAN root handle 1: stab overhead 30 linklayer ethernet htb default 30
tc class add dev $WAN parent 1: classid 1:1 htb rate ${UP} ceil ${UP}
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 1mbit ceil $UP prio 0
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 4mbit ceil 6mbit burst 15k prio 1
tc class add dev $WAN parent 1:1 classid 1:30 htb rate 4mbit ceil $UP prio 1
tc qdisc add dev $WAN parent 1:10 handle 10: pfifo limit 50
tc qdisc add dev $WAN parent 1:20 handle 20: sfq perturb 10
tc qdisc add dev $WAN parent 1:30 handle 30: fq_codel target 8ms limit 2000 noecn
tc filter add dev $WAN parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10
tc filter add dev $WAN parent 1: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:10
tc filter add dev $WAN parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff match ip dport 25 0xffff flowid 1:20
tc filter add dev $WAN parent 1: protocol ip prio 2 u32 \
	match ip src 192.168.1.0/24 match ip dport 8080 0xfff8 flowid 1:20
tc filter add dev $WAN parent 1: protocol ip prio 3 handle 7 fw classid 1:20
tc filter add dev $WAN parent 1: protocol ip prio 4 u32 match ip tos 0xb8 0xfc flowid 1:10
tc filter add dev $WAN parent 1: protocol ip prio 5 u32 match u16 0x0800 0xffff at -2 flowid 1:10
tc qdisc add dev $WAN handle ffff: ingress
tc filter add dev $WAN parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: tbf rate $DOWN burst 32k latency 50ms
tc qdisc add dev ifb0 parent 1: handle 11: fq_codel target 5ms
tc qdisc add dev $LAN root cake bandwidth 5mbit
