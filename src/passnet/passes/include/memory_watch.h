// Whether memory was written into, asked of the kernel instead of summing its bytes: pages are
// protected against writing (userfaultfd, asynchronous, so that a write costs a fault and nothing
// else), and PAGEMAP_SCAN says which have been written since (Linux 6.7). Every way to write is seen,
// as it is the processor's page tables that are looked at. What this cannot watch is refused, and
// whoever asks compares bytes then: memory that is shared or of a file, which others can write
// through page tables of their own; kernels and containers without either call.
//
// design/020-watched-weights.md says what was measured, and what is not seen.

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <vector>

namespace passnet {

inline const uintptr_t PAGE = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));

// The words of linux/fs.h and linux/userfaultfd.h of Linux 6.7, which older headers lack.
struct PageRegion {
  uint64_t start, end, categories;
};

struct ScanArguments {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

constexpr unsigned long SCAN = _IOWR('f', 16, ScanArguments);
constexpr uint64_t SCAN_PROTECTS = 1, SCAN_REFUSES_OTHERS = 2, PAGE_WRITTEN = 2;
constexpr uint64_t PROTECTS_UNTOUCHED = 1 << 13, IS_ASYNCHRONOUS = 1 << 15;
constexpr int USER_MODE_ONLY = 1;

// Whole pages that are watched. `num_writes` grows whenever some of them were found written, by
// whoever looked, since looking protects them again.
struct Region {
  uintptr_t begin, end;
  uint64_t num_writes = 0;
  bool is_watched = false;
};

class Watch {
 public:
  static Watch& of_process() {
    static Watch watch;
    return watch;
  }

  // Whole pages from `begin` to `end`, watched from now on; null where they cannot be.
  std::shared_ptr<Region> region(uintptr_t begin, uintptr_t end) {
    std::lock_guard lock(mutex_);
    look_for_fork();
    if (!is_open() || !is_private(begin, end)) return nullptr;
    auto region = std::make_shared<Region>(Region{begin, end});
    if (!protect(*region)) return nullptr;
    forget_dropped();
    regions_.push_back(region);
    return region;
  }

  // A number that is another one after pages of the region were written; false where that cannot be
  // told any more. `after_fork` was called before.
  bool num_writes(Region& region, uint64_t& number) {
    std::lock_guard lock(mutex_);  // from looking until the writes that looking hides are counted
    if (region.is_watched) {
      int found = scan(region, SCAN_REFUSES_OTHERS);
      if (found > 0 && scan(region, SCAN_REFUSES_OTHERS | SCAN_PROTECTS) < 0) found = -1;
      if (found > 0) count_write(region);
      if (found < 0)  // mapped anew, or this process is a child of that which watched it
        region.is_watched = is_open() && is_private(region.begin, region.end) && protect(region);
    }
    number = region.num_writes;
    return region.is_watched;
  }

  // In a child of a fork nothing is watched, and the files are still those of its parent. To ask who
  // one is takes a fifth as long as to ask about a region, so it is done once for all regions.
  void after_fork() {
    if (getpid() == pid_) return;
    std::lock_guard lock(mutex_);
    look_for_fork();
  }

 private:
  // A fork happens with the lock held, or its child might find it held by a thread that it has not.
  Watch() {
    pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); },
                   [] { of_process().mutex_.unlock(); });
  }

  void look_for_fork() {
    if (getpid() == pid_) return;
    close_one(faults_);
    close_one(pages_);
    is_tried_ = false;
    pid_ = getpid();
  }

  bool is_open() {
    if (is_tried_) return faults_ >= 0 && pages_ >= 0;
    is_tried_ = true;
    faults_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY));
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = IS_ASYNCHRONOUS | PROTECTS_UNTOUCHED;
    if (faults_ >= 0 && ioctl(faults_, UFFDIO_API, &api)) close_one(faults_);
    if (faults_ >= 0) pages_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    return faults_ >= 0 && pages_ >= 0;
  }

  static void close_one(int& file) {
    if (file >= 0) close(file);
    file = -1;
  }

  bool protect(Region& region) {
    uffdio_register asked{};
    asked.range = {region.begin, region.end - region.begin};
    asked.mode = UFFDIO_REGISTER_MODE_WP;
    region.is_watched = !ioctl(faults_, UFFDIO_REGISTER, &asked) &&
                        scan(region, SCAN_REFUSES_OTHERS | SCAN_PROTECTS) >= 0 &&
                        scan(region, SCAN_REFUSES_OTHERS) >= 0;
    count_write(region);  // to others that watch it, what was written before is hidden now
    return region.is_watched;
  }

  // How many of a region's stretches were written, at most one; -1 where that cannot be told. All
  // of them are protected again where `flags` say so.
  int scan(const Region& region, uint64_t flags) {
    PageRegion found;
    ScanArguments arguments{};
    arguments.size = sizeof arguments;
    arguments.flags = flags;
    arguments.start = region.begin;
    arguments.end = region.end;
    if (!(flags & SCAN_PROTECTS)) {
      arguments.vec = reinterpret_cast<uintptr_t>(&found);
      arguments.vec_len = arguments.max_pages = 1;
    }
    arguments.category_mask = arguments.return_mask = PAGE_WRITTEN;
    return ioctl(pages_, SCAN, &arguments);
  }

  void count_write(const Region& written) {
    for (auto& weak : regions_)
      if (auto each = weak.lock(); each && each->begin < written.end && written.begin < each->end)
        each->num_writes++;
  }

  void forget_dropped() {
    std::erase_if(regions_, [](const auto& weak) { return weak.expired(); });
  }

  // Whether all of it is memory of this process alone and of no file, by what /proc says.
  static bool is_private(uintptr_t begin, uintptr_t end) {
    std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
    char line[8192];
    while (maps && begin < end && std::fgets(line, sizeof line, maps.get())) {
      uintptr_t start, stop;
      char rights[5] = "";
      unsigned long inode;
      if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %lu", &start, &stop, rights, &inode) != 4)
        return false;
      if (stop <= begin) continue;
      if (start > begin || rights[3] != 'p' || inode) return false;
      begin = stop;
    }
    return maps && begin >= end;
  }

  std::mutex mutex_;
  std::atomic<pid_t> pid_ = getpid();
  bool is_tried_ = false;
  int faults_ = -1, pages_ = -1;
  std::vector<std::weak_ptr<Region>> regions_;
};

}  // namespace passnet

// The watch that a library uses, which must be one for all libraries of a process.
extern "C" inline __attribute__((used)) const void* passnet_watch() {
  return &passnet::Watch::of_process();
}
