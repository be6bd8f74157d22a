// SPDX-License-Identifier: GPL-2.0-or-later
// A list of TCP flows in ns-3: lines of seconds, source, destination, packets.

#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"

// 2 bytes of PPP, 20 of IP and 20 of TCP make 1,500 on the wire; an ACK has 42.
constexpr uint32_t SEGMENT = 1458;

struct Flow {
    double start;
    uint32_t source, destination, packets;
    ns3::Ptr<ns3::Socket> socket;
    int64_t finish = -1;
};

inline std::vector<Flow> flows;
inline size_t finished = 0;

inline void read(const char* path) {
    std::ifstream file(path);
    for (Flow flow; file >> flow.start >> flow.source >> flow.destination >> flow.packets;) flows.push_back(flow);
}

inline void acknowledged(size_t index, ns3::SequenceNumber32, ns3::SequenceNumber32 highest) {
    Flow& flow = flows[index];
    if (flow.finish < 0 && highest.GetValue() > uint64_t{flow.packets} * SEGMENT) {
        flow.finish = ns3::Simulator::Now().GetNanoSeconds();
        if (++finished == flows.size()) ns3::Simulator::Stop();
    }
}

inline void connected(size_t index, ns3::Ptr<ns3::Socket> socket) {
    socket->Send(ns3::Create<ns3::Packet>(flows[index].packets * SEGMENT));
}

inline void begin(size_t index, ns3::Ptr<ns3::Node> node, ns3::Address to) {
    using namespace ns3;
    Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
    flows[index].socket = socket;
    socket->TraceConnectWithoutContext("HighestRxAck", MakeBoundCallback(&acknowledged, index));
    socket->SetConnectCallback(MakeBoundCallback(&connected, index), MakeNullCallback<void, Ptr<Socket>>());
    socket->Bind();
    socket->Connect(to);
}

// As qjump-sim has it: before there is a round-trip time, a timeout is the smallest one. Linux and RFC 6298 have 1 s.
inline void set_tcp(const std::string& type, bool ecn, bool sack, ns3::Time least_timeout, uint32_t first, uint32_t window) {
    using namespace ns3;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + type));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", StringValue("ns3::TcpClassicRecovery"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(first));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1u << 30));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(window * SEGMENT));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(least_timeout));
    Config::SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(least_timeout));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(least_timeout));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(ecn ? "On" : "Off"));
    Config::SetDefault("ns3::TcpDctcp::DctcpAlphaOnInit", DoubleValue(0));
}
