// Fast traffic for bench/switch/run: a generator of frames, and two bare wires.
//
//     frames send INTERFACE FILE    sends the frames of FILE in a loop, FRAME_BYTES each
//     frames wire IN OUT            forwards frames from IN to OUT, through a receive ring
//     frames vnet A B               forwards both ways with virtio headers, so that TCP
//                                   segments and checksums that are not complete pass
//
// Each runs until a signal ends it. A bare wire does the least that a switch with the
// same sockets must do, so it shows how much of the cost is the kernel's.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum {
    FRAME_BYTES = 60,
    SEND_BATCH = 64,
    RING_BLOCK_BYTES = 1 << 18,
    RING_BLOCKS = 64,
    RING_FRAME_BYTES = 2048,
    RING_TIMEOUT_MS = 1,
    WIRE_BATCH = 256,
    VNET_BATCH = 32,
    VNET_BYTES = 10 + 14 + 65536,
    SOCKET_BUFFER_BYTES = 8 << 20,
};

static void fail(const char *action) {
    fprintf(stderr, "frames: %s: %s\n", action, strerror(errno));
    exit(1);
}

static void set(int fd, int level, int option, int value, const char *name) {
    if (setsockopt(fd, level, option, &value, sizeof value)) fail(name);
}

// A packet socket. It receives nothing until it is attached.
static int packet_socket(void) {
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0) fail("packet socket");
    set(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
    set(fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1, "PACKET_QDISC_BYPASS");
    return fd;
}

static void attach(int fd, const char *interface, int receives) {
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = receives ? htons(ETH_P_ALL) : 0,
        .sll_ifindex = if_nametoindex(interface),
    };
    if (address.sll_ifindex == 0) fail(interface);
    if (bind(fd, (struct sockaddr *)&address, sizeof address)) fail("bind");
}

static void point(struct mmsghdr *messages, struct iovec *parts, int count) {
    memset(messages, 0, count * sizeof *messages);
    for (int i = 0; i < count; i++) {
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
}

// Sends all messages. A frame that the kernel refuses is dropped.
static void send_all(int fd, struct mmsghdr *messages, int count) {
    for (int done = 0; done < count;) {
        int sent = sendmmsg(fd, messages + done, count - done, 0);
        if (sent > 0)
            done += sent;
        else if (errno == ENOBUFS || errno == EAGAIN)
            done++;
        else if (errno != EINTR)
            fail("send");
    }
}

static void generate(const char *interface, const char *path) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status)) fail(path);
    size_t frames = status.st_size / FRAME_BYTES;
    if (frames == 0) fail("a file without frames");
    char *bytes = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (bytes == MAP_FAILED) fail("mmap");
    int fd = packet_socket();
    attach(fd, interface, 0);
    struct mmsghdr messages[SEND_BATCH];
    struct iovec parts[SEND_BATCH];
    point(messages, parts, SEND_BATCH);
    for (size_t next = 0;;) {
        for (int i = 0; i < SEND_BATCH; i++) {
            parts[i] = (struct iovec){bytes + next * FRAME_BYTES, FRAME_BYTES};
            next = next + 1 == frames ? 0 : next + 1;
        }
        send_all(fd, messages, SEND_BATCH);
    }
}

static void forward_ring(const char *in, const char *out) {
    int receiver = packet_socket();
    set(receiver, SOL_PACKET, PACKET_VERSION, TPACKET_V3, "PACKET_VERSION");
    struct tpacket_req3 request = {
        .tp_block_size = RING_BLOCK_BYTES,
        .tp_block_nr = RING_BLOCKS,
        .tp_frame_size = RING_FRAME_BYTES,
        .tp_frame_nr = RING_BLOCKS * (RING_BLOCK_BYTES / RING_FRAME_BYTES),
        .tp_retire_blk_tov = RING_TIMEOUT_MS,
    };
    if (setsockopt(receiver, SOL_PACKET, PACKET_RX_RING, &request, sizeof request)) fail("PACKET_RX_RING");
    char *ring = mmap(NULL, (size_t)RING_BLOCK_BYTES * RING_BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, receiver, 0);
    if (ring == MAP_FAILED) fail("mmap of the ring");
    attach(receiver, in, 1);
    int sender = packet_socket();
    attach(sender, out, 0);
    struct mmsghdr messages[WIRE_BATCH];
    struct iovec parts[WIRE_BATCH];
    point(messages, parts, WIRE_BATCH);
    for (unsigned turn = 0;; turn = (turn + 1) % RING_BLOCKS) {
        struct tpacket_block_desc *block = (void *)(ring + (size_t)turn * RING_BLOCK_BYTES);
        while (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
            struct pollfd ready = {.fd = receiver, .events = POLLIN};
            poll(&ready, 1, 100);
        }
        struct tpacket3_hdr *frame = (void *)((char *)block + block->hdr.bh1.offset_to_first_pkt);
        int count = 0;
        for (uint32_t left = block->hdr.bh1.num_pkts; left > 0; left--) {
            parts[count++] = (struct iovec){(char *)frame + frame->tp_mac, frame->tp_snaplen};
            frame = (void *)((char *)frame + frame->tp_next_offset);
            if (count == WIRE_BATCH || left == 1) {
                send_all(sender, messages, count);
                count = 0;
            }
        }
        __atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    }
}

static void forward_vnet(const char *const *interfaces) {
    static char buffers[VNET_BATCH][VNET_BYTES];
    struct pollfd ends[2];
    for (int i = 0; i < 2; i++) {
        int fd = packet_socket();
        set(fd, SOL_PACKET, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
        set(fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES, "SO_RCVBUFFORCE");
        set(fd, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER_BYTES, "SO_SNDBUFFORCE");
        attach(fd, interfaces[i], 1);
        ends[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    struct mmsghdr messages[VNET_BATCH];
    struct iovec parts[VNET_BATCH];
    point(messages, parts, VNET_BATCH);
    for (;;) {
        poll(ends, 2, -1);
        for (int i = 0; i < 2; i++) {
            if (!ends[i].revents) continue;
            for (int k = 0; k < VNET_BATCH; k++) parts[k] = (struct iovec){buffers[k], VNET_BYTES};
            int count = recvmmsg(ends[i].fd, messages, VNET_BATCH, MSG_DONTWAIT, NULL);
            if (count < 0) {
                if (errno == EAGAIN || errno == EINTR || errno == ENETDOWN) continue;
                fail("receive");
            }
            for (int k = 0; k < count; k++) parts[k].iov_len = messages[k].msg_len;
            send_all(ends[1 - i].fd, messages, count);
        }
    }
}

int main(int count, char **words) {
    const char *mode = count == 4 ? words[1] : "";
    if (!strcmp(mode, "send")) generate(words[2], words[3]);
    if (!strcmp(mode, "wire")) forward_ring(words[2], words[3]);
    if (!strcmp(mode, "vnet")) forward_vnet((const char *const *)&words[2]);
    fprintf(stderr, "usage: frames send INTERFACE FILE | wire IN OUT | vnet A B\n");
    return 2;
}
