-- Wireshark dissector of spray's frames: UDP to the ports from 61440 on, as docs/specs/wire.md has them (WIRE-n), and frames of an
-- emulated fabric with the shim before them (docs/specs/emulation.md, EMU-8).
--
-- Install: copy this file to the folder "Personal Lua Plugins" that Help > About Wireshark > Folders names
-- (on Linux ~/.local/lib/wireshark/plugins/), or give it to one call: tshark -X lua_script:spray.lua -r FILE

-- The name `spray` is taken, by a protocol of Sun RPC.
local spray = Proto("spraynic", "spray NIC transport")

local FIRST_PORT, LAST_PORT = 61440, 61503
local SHIM_TYPE, SHIM_BYTES = 0x88b5, 10
local SEALED = 2
local COMMON_BYTES, SEAL_BYTES, TAG_BYTES = 20, 12, 16
local DSCP_TRIMMED, DSCP_PAUSE, DSCP_TRIMMED_LAST = 44, 45, 47
local ECN_CE, INITIAL_TTL = 3, 64

local kinds = {
    [1] = "Data", [2] = "Ack", [3] = "Nack", [4] = "Connect", [5] = "Accept", [6] = "Close", [7] = "Reset", [8] = "Probe",
    [9] = "ProbeAck", [10] = "Pull", [11] = "PullRequest", [12] = "Retry", [13] = "Rekey",
}
-- Bytes of our header without echoes, by kind (WIRE-7, WIRE-8).
local header_bytes = {
    [1] = 64, [2] = 92, [3] = 44, [4] = 72, [5] = 72, [6] = 32, [7] = 24, [8] = 40, [9] = 40, [10] = 32, [11] = 40, [12] = 36,
    [13] = 120,
}
local close_reasons = { [0] = "done", [1] = "aborted", [2] = "timeout", [3] = "refused", [4] = "the keys do not fit" }
local reset_reasons = { [0] = "unknown connection" }
local versions = { [1] = "plain", [2] = "sealed" }

local f = spray.fields
local function field(name, make, ...) f[name] = make("spraynic." .. name, ...) end

-- WIRE-6: the common header.
field("version", ProtoField.uint8, "Version", base.DEC, versions)
field("kind", ProtoField.uint8, "Kind", base.DEC, kinds)
field("flags", ProtoField.uint8, "Flags", base.HEX)
field("shard", ProtoField.uint8, "Which of its ports the sender takes frames at", base.DEC)
field("connection", ProtoField.uint32, "Connection at the receiver", base.DEC)
field("cookie", ProtoField.uint64, "Cookie", base.HEX)
field("number", ProtoField.uint64, "Frame number", base.DEC)
field("header_checksum", ProtoField.uint32, "Header checksum (XXH3)", base.HEX)
field("header_tag", ProtoField.bytes, "Tag of the header")
-- Flags by kind.
field("flags.ack_now", ProtoField.bool, "An ACK at once", 8, nil, 1)
field("flags.retransmit", ProtoField.bool, "Sent before", 8, nil, 2)
field("flags.trailer", ProtoField.bool, "Trailer, no packet", 8, nil, 4)
field("flags.trimmed", ProtoField.bool, "Triggered by a trimmed packet that had arrived", 8, nil, 1)
field("flags.misrouted", ProtoField.bool, "Triggered by a packet that came by another thread's queue", 8, nil, 2)
field("flags.missing", ProtoField.bool, "The packet is missing", 8, nil, 1)
field("flags.last_port", ProtoField.bool, "Trimmed by the last port", 8, nil, 2)
field("flags.go_back", ProtoField.bool, "Everything from there on again", 8, nil, 4)
field("flags.acknowledgement", ProtoField.bool, "Acknowledges a Close", 8, nil, 1)
field("flags.answer", ProtoField.bool, "The server's answer", 8, nil, 1)
-- Packets and messages.
field("psn", ProtoField.uint64, "Packet sequence number", base.DEC)
field("timestamp", ProtoField.uint64, "Sent at (1/8 ns of the sender's clock)", base.DEC)
field("message", ProtoField.uint32, "Message", base.DEC)
field("offset", ProtoField.uint64, "Offset in the message", base.DEC)
field("message_bytes", ProtoField.uint64, "Bytes of the message", base.DEC)
field("payload_bytes", ProtoField.uint16, "Bytes of the payload", base.DEC)
field("section", ProtoField.uint16, "Section", base.HEX)
field("section.subflows", ProtoField.uint32, "Subflows", base.DEC)
field("section.behind", ProtoField.uint16, "Packets before it in its section", base.DEC, nil, 0x0fff)
field("payload_checksum", ProtoField.uint32, "Payload checksum (XXH3)", base.HEX)
field("payload", ProtoField.bytes, "Payload")
field("payload_tag", ProtoField.bytes, "Tag of the payload")
-- Acknowledgements.
field("cumulative", ProtoField.uint64, "All below were received", base.DEC)
field("timestamp_echo", ProtoField.uint64, "Timestamp echo (1/8 ns)", base.DEC)
field("sack_base", ProtoField.uint64, "Packet of bit 0", base.DEC)
field("bitmap", ProtoField.bytes, "Bitmap")
field("selected", ProtoField.string, "Received beyond")
field("port_echo", ProtoField.uint16, "EV echo (UDP source port)", base.DEC)
field("hops_echo", ProtoField.uint8, "Hop echo", base.DEC)
field("packets", ProtoField.uint8, "Packets since the last ACK", base.DEC)
field("marked_packets", ProtoField.uint8, "Marked ones of them", base.DEC)
field("flags2", ProtoField.uint8, "More flags", base.HEX)
field("mark_echo", ProtoField.bool, "The answered frame was marked", 8, nil, 1)
field("echoes", ProtoField.uint8, "Echoes of other packets", base.DEC)
field("echo_marks", ProtoField.uint16, "Marks of these", base.HEX)
field("echo_port", ProtoField.uint16, "EV echo of another packet", base.DEC)
field("max_data", ProtoField.uint64, "Message bytes that may be sent", base.DEC)
-- Handshake.
field("own_connection", ProtoField.uint32, "Connection at the sender of this", base.DEC)
field("own_cookie", ProtoField.uint64, "Cookie that it demands", base.HEX)
field("window_packets", ProtoField.uint32, "Window in packets", base.DEC)
field("max_payload", ProtoField.uint32, "Largest payload", base.DEC)
field("ack_every", ProtoField.uint32, "Packets for one ACK", base.DEC)
field("exchange_bytes", ProtoField.uint16, "Bytes of the key exchange's message", base.DEC)
field("exchange", ProtoField.bytes, "Message of the key exchange")
field("token", ProtoField.bytes, "Token")
field("generation", ProtoField.uint16, "Generation of keys", base.DEC)
-- The others.
field("close_reason", ProtoField.uint32, "Reason", base.DEC, close_reasons)
field("reset_reason", ProtoField.uint32, "Reason", base.DEC, reset_reasons)
field("probe_token", ProtoField.uint64, "Token of the probe", base.HEX)
field("credit_bytes", ProtoField.uint64, "Credit granted so far", base.DEC)
field("demand_bytes", ProtoField.uint64, "Credit that can be used so far", base.DEC)
field("pulled_bytes", ProtoField.uint64, "Largest credit seen", base.DEC)
-- What follows from the rest of the frame.
field("ev", ProtoField.uint16, "Entropy value (UDP source port)", base.DEC)
field("hops", ProtoField.uint8, "Switches crossed", base.DEC)
field("marked", ProtoField.bool, "Marked (CE)")
field("trimmed", ProtoField.bool, "Cut to its header")
field("trimmed_last", ProtoField.bool, "Cut by the last port")
field("pause", ProtoField.bool, "A switch asks the flow's sender to pause")

local e = {
    marked = ProtoExpert.new("spraynic.expert.marked", "A queue marked the frame", expert.group.SEQUENCE, expert.severity.NOTE),
    trimmed = ProtoExpert.new("spraynic.expert.trimmed", "A switch cut the frame to its header", expert.group.SEQUENCE, expert.severity.WARN),
    retransmit = ProtoExpert.new("spraynic.expert.retransmit", "The packet was sent before", expert.group.SEQUENCE, expert.severity.NOTE),
    nack = ProtoExpert.new("spraynic.expert.nack", "A packet did not arrive whole", expert.group.SEQUENCE, expert.severity.NOTE),
    sealed = ProtoExpert.new("spraynic.expert.sealed", "Sealed: the payload is encrypted", expert.group.SECURITY, expert.severity.CHAT),
    kind = ProtoExpert.new("spraynic.expert.kind", "No kind of frame", expert.group.MALFORMED, expert.severity.ERROR),
    short = ProtoExpert.new("spraynic.expert.short", "Shorter than its header", expert.group.MALFORMED, expert.severity.ERROR),
    length = ProtoExpert.new("spraynic.expert.length", "Not as long as its header says", expert.group.MALFORMED, expert.severity.ERROR),
    echoes = ProtoExpert.new("spraynic.expert.echoes", "More than 15 echoes", expert.group.MALFORMED, expert.severity.ERROR),
}
spray.experts = e

local function f_of(name) return Field.new(name) end
local ip_dscp, ip_ecn, ip_ttl = f_of("ip.dsfield.dscp"), f_of("ip.dsfield.ecn"), f_of("ip.ttl")
local v6_dscp, v6_ecn, v6_hops = f_of("ipv6.tclass.dscp"), f_of("ipv6.tclass.ecn"), f_of("ipv6.hlim")

-- The value of the innermost IP header's field, of whichever version.
local function ip(v4, v6)
    local all = { v4() }
    if #all == 0 then all = { v6() } end
    return #all > 0 and all[#all].value or nil
end

-- 1,3-5: the packets whose bits are set. Bit i is bit i % 8 of byte i / 8.
local function selected(bitmap, base)
    local runs, first, last = {}, nil, nil
    local function close()
        if first then runs[#runs + 1] = first == last and tostring(base + first) or (tostring(base + first) .. "-" .. tostring(base + last)) end
        first = nil
    end
    for i = 0, 255 do
        if bit.band(bit.rshift(bitmap:get_index(math.floor(i / 8)), i % 8), 1) == 1 then
            if not first then first = i end
            last = i
        else
            close()
        end
    end
    close()
    return table.concat(runs, ",")
end

local flags_of = {
    [1] = { "ack_now", "retransmit", "trailer" }, [2] = { "trimmed", "misrouted" }, [3] = { "missing", "last_port", "go_back" },
    [6] = { "acknowledgement" }, [13] = { "answer" },
}

-- One function a kind: adds what follows the common header, and returns what the Info column says.
local body = {}

body[1] = function(t, b)
    t:add(f.psn, b(24, 8))
    t:add(f.timestamp, b(32, 8))
    t:add(f.message, b(20, 4))
    t:add(f.offset, b(40, 8))
    t:add(f.message_bytes, b(48, 8))
    t:add(f.payload_bytes, b(56, 2))
    local section = t:add(f.section, b(58, 2))
    local code = bit.rshift(b(58, 2):uint(), 12)
    if code == 0 or code > 7 then
        section:append_text(" (says nothing)")
    else
        section:add(f["section.subflows"], b(58, 2), 2 ^ (code - 1))
        section:add(f["section.behind"], b(58, 2))
    end
    t:add(f.payload_checksum, b(60, 4))
    return string.format("psn=%s message=%u offset=%s len=%u", b(24, 8):uint64(), b(20, 4):uint(), b(40, 8):uint64(), b(56, 2):uint())
end

body[2] = function(t, b, room)
    t:add(f.cumulative, b(24, 8))
    t:add(f.timestamp_echo, b(32, 8))
    t:add(f.sack_base, b(40, 8))
    t:add(f.bitmap, b(48, 32))
    local beyond = selected(b(48, 32):bytes(), b(40, 8):uint64())
    t:add(f.selected, b(48, 32), beyond):set_generated()
    t:add(f.port_echo, b(20, 2))
    t:add(f.hops_echo, b(22, 1))
    t:add(f.packets, b(23, 1))
    t:add(f.marked_packets, b(88, 1))
    t:add(f.flags2, b(89, 1)):add(f.mark_echo, b(89, 1))
    local count = b(90, 1):uint()
    local echoes = t:add(f.echoes, b(90, 1))
    t:add(f.max_data, b(80, 8))
    if count > 15 then
        echoes:add_proto_expert_info(e.echoes)
    elseif count > 0 and b:len() >= 94 + 2 * count then
        echoes:add(f.echo_marks, b(92, 2))
        for i = 0, count - 1 do
            local echo = echoes:add(f.echo_port, b(94 + 2 * i, 2))
            if bit.band(bit.rshift(b(92, 2):uint(), i), 1) == 1 then echo:append_text(" (marked)") end
        end
    end
    local text = string.format("below=%s", b(24, 8):uint64())
    return beyond == "" and text or text .. " and " .. beyond
end

body[3] = function(t, b)
    t:add(f.psn, b(24, 8))
    t:add(f.timestamp_echo, b(32, 8))
    t:add(f.port_echo, b(20, 2))
    t:add(f.hops_echo, b(22, 1))
    t:add(f.mark_echo, b(23, 1))
    t:add(f.payload_bytes, b(40, 2))
    t:add_proto_expert_info(e.nack)
    return string.format("psn=%s", b(24, 8):uint64())
end

local function terms(t, b)
    t:add(f.own_connection, b(20, 4))
    t:add(f.own_cookie, b(24, 8))
    t:add(f.window_packets, b(40, 4))
    t:add(f.max_payload, b(44, 4))
    t:add(f.max_data, b(32, 8))
    t:add(f.ack_every, b(48, 4))
    t:add(f.exchange_bytes, b(52, 2))
    t:add(f.token, b(56, 16))
    return string.format("connection=%u", b(20, 4):uint())
end
body[4], body[5] = terms, terms

body[6] = function(t, b)
    t:add(f.cumulative, b(24, 8))
    t:add(f.close_reason, b(20, 4))
    return close_reasons[b(20, 4):uint()] or ""
end

body[7] = function(t, b)
    t:add(f.reset_reason, b(20, 4))
    return reset_reasons[b(20, 4):uint()] or ""
end

body[8] = function(t, b)
    t:add(f.probe_token, b(24, 8))
    t:add(f.timestamp, b(32, 8))
    return ""
end

body[9] = function(t, b)
    t:add(f.probe_token, b(24, 8))
    t:add(f.timestamp_echo, b(32, 8))
    t:add(f.port_echo, b(20, 2))
    t:add(f.hops_echo, b(22, 1))
    t:add(f.mark_echo, b(23, 1))
    return ""
end

body[10] = function(t, b)
    t:add(f.credit_bytes, b(24, 8))
    return string.format("credit=%s", b(24, 8):uint64())
end

body[11] = function(t, b)
    t:add(f.demand_bytes, b(24, 8))
    t:add(f.pulled_bytes, b(32, 8))
    return string.format("demand=%s", b(24, 8):uint64())
end

body[12] = function(t, b)
    t:add(f.token, b(20, 16))
    return ""
end

body[13] = function(t, b)
    t:add(f.generation, b(20, 2))
    t:add(f.exchange, b(24, 96))
    return string.format("generation=%u", b(20, 2):uint())
end

-- What lies behind the header: a payload or a message of the key exchange, and in sealed frames tags.
local function tail(t, b, kind, at, sealed, cut)
    if sealed and b:len() >= at + SEAL_BYTES then
        t:add(f.header_tag, b(16, 4)):append_text(" (first bytes)")
        t:add(f.header_tag, b(at, SEAL_BYTES)):append_text(" (the others)")
        at = at + SEAL_BYTES
    end
    local said = b:reported_len() - at
    local expected = 0
    if kind == 1 and not cut then expected = b(56, 2):uint() + (sealed and TAG_BYTES or 0) end
    if kind == 4 or kind == 5 then expected = b(52, 2):uint() end
    if said ~= expected then t:add_proto_expert_info(e.length) end
    -- A capture may have only the first bytes of a frame.
    local there = b:captured_len() - at
    if there <= 0 or said <= 0 then return end
    local tag = sealed and kind == 1 and there == said and TAG_BYTES or 0
    if there > tag then t:add(kind == 1 and f.payload or f.exchange, b(at, there - tag)) end
    if tag > 0 then t:add(f.payload_tag, b(at + there - tag, tag)) end
end

function spray.dissector(buffer, pinfo, tree)
    if buffer:captured_len() < 2 then return 0 end
    local version, kind = buffer(0, 1):uint(), buffer(1, 1):uint()
    -- The ports are of the range that any program gets its own from: RTP, DTLS and QUIC begin with other bytes.
    if not versions[version] then return 0 end
    local name = kinds[kind]
    local sealed = version == SEALED
    pinfo.cols.protocol = "SprayNIC"
    local t = tree:add(spray, buffer(), "spray NIC transport")
    t:add(f.version, buffer(0, 1))
    local kind_item = t:add(f.kind, buffer(1, 1))
    if not name then
        kind_item:add_proto_expert_info(e.kind)
        return buffer:captured_len()
    end
    t:append_text(", " .. name)
    local bytes = header_bytes[kind]
    if buffer:captured_len() < bytes then
        pinfo.cols.info = name .. (buffer:reported_len() < bytes and " [too short]" or " [cut by the capture]")
        if buffer:reported_len() < bytes then t:add_proto_expert_info(e.short) end
        return buffer:captured_len()
    end
    local flags = t:add(f.flags, buffer(2, 1))
    for _, flag in ipairs(flags_of[kind] or {}) do flags:add(f["flags." .. flag], buffer(2, 1)) end
    t:add(f.shard, buffer(3, 1))
    t:add(f.connection, buffer(4, 4))
    t:add(sealed and f.number or f.cookie, buffer(8, 8))
    if sealed then t:add_proto_expert_info(e.sealed) else t:add(f.header_checksum, buffer(16, 4)) end

    local dscp, ecn, ttl = ip(ip_dscp, v6_dscp), ip(ip_ecn, v6_ecn), ip(ip_ttl, v6_hops)
    t:add(f.ev, pinfo.src_port):set_generated()
    if ttl and ttl <= INITIAL_TTL then t:add(f.hops, INITIAL_TTL - ttl):set_generated() end
    local marked = ecn == ECN_CE
    t:add(f.marked, marked):set_generated()
    if dscp == DSCP_PAUSE then t:add(f.pause, true):set_generated() end
    local seal = sealed and SEAL_BYTES or 0
    local cut = kind == 1 and (dscp == DSCP_TRIMMED or dscp == DSCP_TRIMMED_LAST) and buffer:reported_len() == bytes + seal

    local said = body[kind](t, buffer)
    if kind == 1 then
        t:add(f.trimmed, cut):set_generated()
        if cut then
            t:add(f.trimmed_last, dscp == DSCP_TRIMMED_LAST):set_generated()
            t:add_proto_expert_info(e.trimmed)
        end
        if bit.band(buffer(2, 1):uint(), 2) ~= 0 then t:add_proto_expert_info(e.retransmit) end
    end
    if marked then t:add_proto_expert_info(e.marked) end
    local at = bytes
    if kind == 2 then
        local count = buffer(90, 1):uint()
        at = at + (count > 0 and count <= 15 and 2 + 2 * count or 0)
    end
    tail(t, buffer, kind, at, sealed, cut)

    local how = {}
    if sealed then how[#how + 1] = "sealed" end
    if marked then how[#how + 1] = "marked" end
    if cut then how[#how + 1] = "trimmed" end
    if kind == 1 and bit.band(buffer(2, 1):uint(), 2) ~= 0 then how[#how + 1] = "again" end
    if kind == 1 and bit.band(buffer(2, 1):uint(), 4) ~= 0 then how[#how + 1] = "trailer" end
    local notes = #how > 0 and " [" .. table.concat(how, ", ") .. "]" or ""
    pinfo.cols.info = string.format("%s EV=%u connection=%u %s%s", name, pinfo.src_port, buffer(4, 4):uint(), said, notes)
    return buffer:captured_len()
end

DissectorTable.get("udp.port"):add(FIRST_PORT .. "-" .. LAST_PORT, spray)

-- The source port is the entropy value, and so any port: also one of a protocol that Wireshark knows, which it would ask first, as it is the
-- lower one. What is to our ports and looks like ours is asked for before all ports.
spray:register_heuristic("udp", function(buffer, pinfo, tree)
    if pinfo.dst_port < FIRST_PORT or pinfo.dst_port > LAST_PORT or buffer:captured_len() < COMMON_BYTES then return false end
    if not versions[buffer(0, 1):uint()] or not kinds[buffer(1, 1):uint()] then return false end
    spray.dissector(buffer, pinfo, tree)
    return true
end)
if set_preference then set_preference("udp.try_heuristic_first", true) end

-- EMU-8: the shim before a frame in an emulated fabric.
local shim = Proto("sprayemu", "spray emulation")
shim.fields.detour = ProtoField.uint8("sprayemu.detour", "Detour", base.DEC)
shim.fields.virtual_time = ProtoField.uint64("sprayemu.virtual_time", "Virtual time (ps)", base.DEC)
local ethernet = Dissector.get("eth_withoutfcs")

function shim.dissector(buffer, pinfo, tree)
    if buffer:captured_len() < SHIM_BYTES then return 0 end
    local t = tree:add(shim, buffer(0, SHIM_BYTES))
    t:add(shim.fields.detour, buffer(0, 1))
    t:add(shim.fields.virtual_time, buffer(2, 8))
    return SHIM_BYTES + ethernet:call(buffer(SHIM_BYTES):tvb(), pinfo, tree)
end
DissectorTable.get("ethertype"):add(SHIM_TYPE, shim)
