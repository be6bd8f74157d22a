// SPDX-License-Identifier: GPL-2.0-or-later
// Flows from hosts at 10 Gb/s over one switch to host 0 at 1 Gb/s, 25 us each cable, in ns-3.
//
//   bottleneck FLOWS QUEUE MARK SOCKET ECN SACK
//
// FLOWS: lines of seconds, source (1, 2, ...), destination (0), packets. QUEUE: packets that wait at each link. MARK: packets that wait from
// which on the bottleneck marks, or 0. SOCKET: TcpLinuxReno or TcpDctcp. ECN: On or Off. SACK: 1 or 0. It prints the completion time of each flow
// in ns, and a last line of name=value.

#include <algorithm>
#include <iostream>
#include <unordered_map>

#include "flows.h"
#include "ns3/applications-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

std::unordered_map<uint64_t, int64_t> left;
int64_t latency_ns = 0;
uint64_t delivered = 0, sent = 0, again = 0, dropped = 0;

// Data by sender, port and sequence number, 0 for anything else: what is cut from one send has the same number of a packet in ns-3.
uint64_t name(Ptr<const Packet> packet) {
    Ptr<Packet> copy = packet->Copy();
    Ipv4Header ip;
    TcpHeader tcp;
    copy->RemoveHeader(ip);
    copy->RemoveHeader(tcp);
    if (copy->GetSize() == 0) return 0;
    return uint64_t{ip.GetSource().Get() & 0xffff} << 48 | uint64_t{tcp.GetSourcePort()} << 32 | tcp.GetSequenceNumber().GetValue();
}

void leaves(Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t) {
    const uint64_t data = name(packet);
    if (data == 0) return;
    ++sent;
    if (!left.insert_or_assign(data, Simulator::Now().GetNanoSeconds()).second) ++again;
}

void arrives(Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t) {
    auto found = left.find(name(packet));
    if (found == left.end()) return;
    latency_ns += Simulator::Now().GetNanoSeconds() - found->second;
    ++delivered;
}

// Without a queueing discipline, what finds the device's queue full is dropped above it.
void lost(Ptr<const Packet>) {
    ++dropped;
}

}  // namespace

int main(int count, char** words) {
    if (count != 7) {
        std::cerr << "usage: bottleneck FLOWS QUEUE MARK SOCKET ECN SACK\n";
        return 2;
    }
    const std::string queue = std::string(words[2]) + "p";
    const double mark = std::stod(words[3]);
    set_tcp(words[4], words[5] == std::string("On"), words[6] == std::string("1"), MilliSeconds(10), 10, 4095);
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", StringValue(queue));

    read(words[1]);
    uint32_t hosts = 1;
    for (const Flow& flow : flows) hosts = std::max(hosts, flow.source + 1);

    NodeContainer nodes;
    nodes.Create(hosts + 1);
    const Ptr<Node> joint = nodes.Get(hosts);
    InternetStackHelper().Install(nodes);
    Ptr<NetDevice> bottleneck;
    Ptr<QueueDisc> marking;
    Ipv4Address to;
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    for (uint32_t host = 0; host < hosts; ++host) {
        PointToPointHelper cable;
        cable.SetDeviceAttribute("DataRate", StringValue(host == 0 ? "1Gbps" : "10Gbps"));
        cable.SetChannelAttribute("Delay", StringValue("25us"));
        NetDeviceContainer pair = cable.Install(joint, nodes.Get(host));
        Ipv4InterfaceContainer interfaces = addresses.Assign(pair);
        addresses.NewNetwork();
        // What Linux has by default would wait above the device.
        TrafficControlHelper().Uninstall(pair);
        if (host > 0) continue;
        to = interfaces.GetAddress(1);
        bottleneck = pair.Get(0);
        if (mark > 0) {
            // RED without averaging or a random part; one packet waits in the device below it.
            DynamicCast<PointToPointNetDevice>(bottleneck)->GetQueue()->SetMaxSize(QueueSize("1p"));
            TrafficControlHelper red;
            red.SetRootQueueDisc("ns3::RedQueueDisc", "MinTh", DoubleValue(mark - 0.001), "MaxTh", DoubleValue(mark), "QW",
                                 DoubleValue(1), "Gentle", BooleanValue(false), "UseEcn", BooleanValue(true), "UseHardDrop",
                                 BooleanValue(false), "MaxSize", StringValue(queue), "LinkBandwidth", StringValue("1Gbps"),
                                 "LinkDelay", StringValue("25us"));
            marking = red.Install(bottleneck).Get(0);
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    PacketSinkHelper("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 80)).Install(nodes.Get(0));
    for (uint32_t host = 1; host < hosts; ++host)
        nodes.Get(host)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("Tx", MakeCallback(&leaves));
    nodes.Get(0)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("Rx", MakeCallback(&arrives));
    joint->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", MakeCallback(&lost));
    for (size_t index = 0; index < flows.size(); ++index)
        Simulator::Schedule(Seconds(flows[index].start), &begin, index, nodes.Get(flows[index].source), InetSocketAddress(to, 80));
    Simulator::Stop(Seconds(100));
    Simulator::Run();

    uint64_t marked = 0;
    if (marking) {
        dropped += marking->GetStats().nTotalDroppedPackets;
        marked = marking->GetStats().nTotalMarkedPackets;
    }
    for (const Flow& flow : flows)
        std::cout << (flow.finish < 0 ? -1 : flow.finish - Seconds(flow.start).GetNanoSeconds()) << "\n";
    std::cout << "sent=" << sent << " again=" << again << " delivered=" << delivered << " dropped=" << dropped << " marked=" << marked
              << " latency_ns=" << double(latency_ns) / delivered << "\n";
    Simulator::Destroy();
}
