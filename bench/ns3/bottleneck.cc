// SPDX-License-Identifier: GPL-2.0-or-later
// Flows from hosts at 10 Gb/s over one switch to host 0 at 1 Gb/s, 25 us each cable, in ns-3.
//
//   bottleneck FLOWS QUEUE MARK SOCKET ECN SACK
//
// FLOWS: lines of seconds, source (1, 2, ...), destination (0), packets. QUEUE: packets that wait at each link. MARK: packets that wait from
// which on the bottleneck marks, or 0. SOCKET: TcpLinuxReno or TcpDctcp. ECN: On or Off. SACK: 1 or 0. It prints the completion time of each flow
// in ns, and a last line of name=value.

#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

// 2 bytes of PPP, 20 of IP and 20 of TCP make 1,500 on the wire; an ACK has 42.
constexpr uint32_t SEGMENT = 1458;

struct Flow {
    double start;
    uint32_t source, destination, packets;
    Ptr<Socket> socket;
    int64_t finish = -1;
};

std::vector<Flow> flows;
size_t finished = 0;
std::unordered_map<uint64_t, int64_t> left;
int64_t latency_ns = 0;
uint64_t delivered = 0, sent = 0, again = 0, dropped = 0;

void acknowledged(size_t index, SequenceNumber32, SequenceNumber32 highest) {
    Flow& flow = flows[index];
    if (flow.finish < 0 && highest.GetValue() > uint64_t{flow.packets} * SEGMENT) {
        flow.finish = Simulator::Now().GetNanoSeconds();
        if (++finished == flows.size()) Simulator::Stop();
    }
}

void connected(size_t index, Ptr<Socket> socket) {
    socket->Send(Create<Packet>(flows[index].packets * SEGMENT));
}

void begin(size_t index, Ptr<Node> node, Address to) {
    Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
    flows[index].socket = socket;
    socket->TraceConnectWithoutContext("HighestRxAck", MakeBoundCallback(&acknowledged, index));
    socket->SetConnectCallback(MakeBoundCallback(&connected, index), MakeNullCallback<void, Ptr<Socket>>());
    socket->Bind();
    socket->Connect(to);
}

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
    const std::string queue = std::string(words[2]) + "p", tcp = words[4], ecn = words[5];
    const double mark = std::stod(words[3]);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + tcp));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", StringValue("ns3::TcpClassicRecovery"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1u << 30));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4095 * SEGMENT));
    // As qjump-sim has it: before there is a round-trip time, a timeout is the smallest one. Linux and RFC 6298 have 1 s.
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(MilliSeconds(10)));
    Config::SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(MilliSeconds(10)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(10)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(words[6] == std::string("1")));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(ecn));
    Config::SetDefault("ns3::TcpDctcp::DctcpAlphaOnInit", DoubleValue(0));
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", StringValue(queue));

    std::ifstream file(words[1]);
    uint32_t hosts = 1;
    for (Flow flow; file >> flow.start >> flow.source >> flow.destination >> flow.packets;) {
        hosts = std::max(hosts, flow.source + 1);
        flows.push_back(flow);
    }

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
