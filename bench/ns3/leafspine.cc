// SPDX-License-Identifier: GPL-2.0-or-later
// Figure 9's fabric and a list of flows in ns-3, as bench/ns2/leafspine.tcl has it: 9 racks of 16 hosts at 10 Gb/s, one spine of 160 Gb/s
// for four of 40, queues of 150 packets in bytes, TCP without fast retransmit. It has no selective acknowledgements: with them ns-3.37
// (Debian's) ends with a segmentation fault in TcpRateLinux::SkbSent.
//
//   leafspine FLOWS count|time
//
// `count` looks at every packet, which costs time, to count packet-hops; `time` does not, and says 0. It prints one line of name=value.

#include <iostream>

#include "flows.h"
#include "ns3/applications-module.h"
#include "ns3/nix-vector-routing-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

constexpr uint32_t RACKS = 9, IN_RACK = 16, HOSTS = RACKS * IN_RACK;

uint64_t hops = 0, dropped = 0;

void crossed(Ptr<const Packet>) {
    ++hops;
}

void lost(Ptr<const Packet>) {
    ++dropped;
}

// Of memory that was resident. What getrusage() says may be of the program that started this one.
uint64_t most_kilobytes() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (uint64_t kilobytes; word == "VmHWM:" && status >> kilobytes) return kilobytes;
    return 0;
}

NetDeviceContainer joined(Ptr<Node> one, Ptr<Node> other, const char* rate, Time delay) {
    PointToPointHelper cable;
    cable.SetDeviceAttribute("DataRate", StringValue(rate));
    cable.SetChannelAttribute("Delay", TimeValue(delay));
    return cable.Install(one, other);
}

}  // namespace

int main(int count, char** words) {
    if (count != 3) {
        std::cerr << "usage: leafspine FLOWS count|time\n";
        return 2;
    }
    const bool counts = words[2] == std::string("count");
    set_tcp("TcpLinuxReno", false, false, MicroSeconds(200), 12, 149);
    Config::SetDefault("ns3::TcpSocketBase::ReTxThreshold", UintegerValue(1'000'000));
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", StringValue("225000B"));
    read(words[1]);

    NodeContainer hosts(HOSTS), leaves(RACKS), spine(1);
    InternetStackHelper stack;
    stack.SetRoutingHelper(Ipv4NixVectorHelper());
    stack.SetIpv6StackInstall(false);
    stack.InstallAll();
    // Without a queueing discipline, what finds a device's queue full is dropped above it.
    for (auto node = NodeList::Begin(); node != NodeList::End(); ++node)
        (*node)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", MakeCallback(&lost));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    std::vector<Ipv4Address> at;
    auto address = [&](NetDeviceContainer pair) {
        const Ipv4InterfaceContainer interfaces = addresses.Assign(pair);
        addresses.NewNetwork();
        // What Linux has by default would wait above the device.
        TrafficControlHelper().Uninstall(pair);
        for (uint32_t end = 0; end < 2; ++end) {
            if (counts) pair.Get(end)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&crossed));
        }
        return interfaces.GetAddress(0);
    };
    for (uint32_t host = 0; host < HOSTS; ++host)
        at.push_back(address(joined(hosts.Get(host), leaves.Get(host / IN_RACK), "10Gbps", NanoSeconds(2'700))));
    for (uint32_t rack = 0; rack < RACKS; ++rack)
        address(joined(leaves.Get(rack), spine.Get(0), "160Gbps", NanoSeconds(200)));
    PacketSinkHelper("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 80)).Install(hosts);
    for (size_t index = 0; index < flows.size(); ++index) {
        const Flow& flow = flows[index];
        Simulator::Schedule(Seconds(flow.start), &begin, index, hosts.Get(flow.source), InetSocketAddress(at[flow.destination], 80));
    }
    Simulator::Stop(Seconds(10));
    Simulator::Run();
    std::cout << "finished=" << finished << "/" << flows.size() << " end=" << Simulator::Now().GetSeconds() << "s hops=" << hops
              << " dropped=" << dropped << " max_rss_MB=" << most_kilobytes() / 1024 << "\n";
    Simulator::Destroy();
}
