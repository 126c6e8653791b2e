package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"serpcrypt/cipher/modes"
	"serpcrypt/cipher/serpent"
	"serpcrypt/internal/cpucycles"
	"serpcrypt/internal/fusefs"
	"serpcrypt/internal/load"
	"serpcrypt/volume"
)

const (
	pathFile = "file"
	pathFuse = "fuse"
	pathExt4 = "ext4"

	kernelNone = "none"
	kernelNull = "null"

	// As create makes containers.
	volumeSpec       = "serpent-xts-plain64"
	volumeKeySize    = 64 // bytes
	volumeSectorSize = 4096

	// maxInFlight bounds requests of all threads together, in bytes: more of
	// the slow kernels would take longer than the measurement.
	maxInFlight = 8 << 20

	longestEnd = 30 * time.Second // of a mount that nobody uses any more

	checkedBytes = 1 << 20 // of what each kernel writes and all read
)

// volumeBytes is the size of each of the three files, and volumeRounds how often
// the rivals take turns. A test has less.
var (
	volumeBytes  int64 = 128 << 20
	volumeRounds       = 5
)

var (
	volumeSizes  = []int{4 << 10, 64 << 10, 1 << 20}
	volumeDepths = []int{1, 8, 32}
)

// stage is where volumes are measured: a file, and two volumes behind the same
// front end, one with the null cipher and one with Serpent by any kernel.
type stage struct {
	report  *Report
	storage string
	program func() *exec.Cmd // for the load
	load    *load.Process
	file    *os.File
	onExt4  bool // the volumes have file systems
	null    *lane
	serpent *lane
	volumes []volumeOf // over the serpent lane's store
	nulls   *volume.Volume
	undo    func() // what makes this process a server, or nil
}

// volumeOf is a volume by one kernel.
type volumeOf struct {
	kernel serpent.Kernel
	*volume.Volume
}

func volumeContests(report *Report, o Options) ([]contest, error) {
	if o.Load == nil {
		return nil, errors.New("volume: there is no program for the load")
	}
	if err := fusefs.Available(); err != nil {
		return nil, err
	}
	s := &stage{report: report, program: o.Load}
	if err := s.build(o); err != nil {
		return nil, errors.Join(err, s.close())
	}
	var contests []contest
	paths := []string{pathFuse}
	if os.Geteuid() == 0 && haveExt4() {
		paths = append(paths, pathExt4)
	}
	for _, path := range paths {
		for _, pattern := range []string{"sequential", "random"} {
			for _, op := range []string{"read", "write"} {
				for _, size := range volumeSizes {
					for _, depth := range volumeDepths {
						if size*depth <= maxInFlight {
							t := volumeTask{path, op, pattern, size, depth}
							contests = append(contests, contest{run: func(ctx context.Context, each time.Duration) error {
								return s.measure(ctx, each, t)
							}})
						}
					}
				}
			}
		}
	}
	contests[len(contests)-1].close = s.close
	return contests, nil
}

func (s *stage) build(o Options) (err error) {
	ctx := context.Background()
	if s.file, s.storage, err = namelessFile(volumeBytes); err != nil {
		return err
	}
	if s.null, err = newLane(volumeBytes); err != nil {
		return err
	}
	if s.serpent, err = newLane(volumeBytes); err != nil {
		return err
	}
	if s.nulls, err = volume.NewBare(s.null.store, nullCipher{}, volumeSectorSize); err != nil {
		return err
	}
	kernels := contestingKernels(o.Kernel)
	if o.Kernel != serpent.Auto {
		kernels = []serpent.Kernel{o.Kernel}
	}
	for _, k := range kernels {
		cipher, err := modes.New(volumeSpec, testBytes(volumeKeySize), volumeSectorSize, k)
		if err != nil {
			return err
		}
		v, err := volume.NewBare(s.serpent.store, cipher, volumeSectorSize)
		if err != nil {
			cipher.Wipe()
			return err
		}
		s.volumes = append(s.volumes, volumeOf{k, v})
	}
	if err := errors.Join(s.nulls.Fill(ctx, nil), s.volumes[len(s.volumes)-1].Fill(ctx, nil), s.check()); err != nil {
		return err
	}
	if err := s.show(); err != nil {
		return err
	}
	s.undo = fusefs.MoreThreads()
	return s.fill(load.Inherited(0), volumeBytes, false)
}

// show has the load use the volumes.
func (s *stage) show() error {
	null, err := s.null.show(s.nulls)
	if err != nil {
		return err
	}
	defer null.Close()
	inSerpent, err := s.serpent.show(s.volumes[0].Volume)
	if err != nil {
		return err
	}
	defer inSerpent.Close()
	s.load, err = load.Start(s.program(), s.file, null, inSerpent)
	return err
}

// check has each kernel write, and all and the portable code read it.
func (s *stage) check() error {
	generic, err := modes.New(volumeSpec, testBytes(volumeKeySize), volumeSectorSize, serpent.Generic)
	if err != nil {
		return err
	}
	v, err := volume.NewBare(s.serpent.store, generic, volumeSectorSize)
	if err != nil {
		return err
	}
	readers := append(slices.Clone(s.volumes), volumeOf{serpent.Generic, v})
	want, got := testBytes(checkedBytes), make([]byte, checkedBytes)
	for _, writer := range s.volumes {
		if _, err := writer.WriteAt(want, checkedBytes); err != nil {
			return err
		}
		for _, reader := range readers {
			clear(got)
			if _, err := reader.ReadAt(got, checkedBytes); err != nil {
				return err
			}
			if !bytes.Equal(got, want) {
				return &MismatchError{fmt.Sprintf("volume: %s reads other bytes than %s wrote", reader.kernel, writer.kernel)}
			}
		}
	}
	return v.Close()
}

// fill writes a file from its beginning.
func (s *stage) fill(path string, size int64, direct bool) error {
	_, err := s.load.Do(load.Order{Path: path, Area: size, Write: true, Direct: direct, Bytes: load.MaxBytes, Depth: 1, Once: true})
	return err
}

func (s *stage) close() error {
	var errs []error
	if s.load != nil {
		errs = append(errs, s.load.Close())
	}
	if s.file != nil {
		errs = append(errs, s.file.Close())
	}
	for _, l := range []*lane{s.null, s.serpent} {
		if l != nil {
			errs = append(errs, l.close())
		}
	}
	if s.undo != nil {
		s.undo()
	}
	if s.nulls != nil {
		_ = s.nulls.Close() // nobody needs what it holds
	}
	for _, v := range s.volumes {
		_ = v.Close()
	}
	return errors.Join(errs...)
}

// volumeTask are the requests of one measurement.
type volumeTask struct {
	path, op, pattern string
	bytes, depth      int
}

// rival is who does a task.
type rival struct {
	path, kernel string
	file         int            // number of the load's
	lane         *lane          // nil: the bare file
	volume       *volume.Volume // which the lane shows
}

// rivals returns those that do tasks on a path, the null cipher's first.
func (s *stage) rivals(path string) []rival {
	rivals := []rival{{path, kernelNull, 1, s.null, s.nulls}}
	if path == pathFuse {
		rivals = append(rivals, rival{pathFile, kernelNone, 0, nil, nil})
	}
	for _, v := range s.volumes {
		rivals = append(rivals, rival{path, v.kernel.String(), 2, s.serpent, v.Volume})
	}
	return rivals
}

// measure has the rivals do the task by turns.
func (s *stage) measure(ctx context.Context, each time.Duration, t volumeTask) error {
	if t.path == pathExt4 && !s.onExt4 {
		if err := s.makeExt4(); err != nil {
			return err
		}
	}
	rivals := s.rivals(t.path)
	speeds := make([][]float64, len(rivals))
	added := make([][]float64, len(rivals)) // core cycles per byte
	for range volumeRounds {
		var nullCycles float64
		for i, r := range rivals {
			if err := ctx.Err(); err != nil {
				return err
			}
			a, cycles, err := s.run(r, t, each/time.Duration(volumeRounds))
			if err != nil {
				return err
			}
			if i == 0 {
				nullCycles = cycles
			}
			speeds[i] = append(speeds[i], float64(a.Bytes)/a.Time.Seconds())
			added[i] = append(added[i], cycles-nullCycles)
		}
	}
	medians := make([]float64, len(rivals))
	for i := range rivals {
		medians[i] = cpucycles.Median(speeds[i])
	}
	for i, r := range rivals {
		x := VolumeResult{
			Suite: "volume", Storage: s.storage, Path: r.path, Kernel: r.kernel, Op: t.op, Pattern: t.pattern,
			Bytes: t.bytes, Depth: t.depth, BytesPerSecond: roundTo(medians[i], 1), RatioToNull: roundTo(medians[i]/medians[0], 1000),
		}
		if cpucycles.Known && r.lane == s.serpent {
			c := roundTo(cpucycles.Median(added[i]), 1000)
			x.AddedCyclesPerByte = &c
		}
		s.report.Volume = append(s.report.Volume, x)
	}
	return nil
}

// run does the task for so long. cycles are the server's, of all cores, per byte.
func (s *stage) run(r rival, t volumeTask, d time.Duration) (a load.Answer, cycles float64, err error) {
	o := load.Order{
		Path: load.Inherited(r.file), Area: volumeBytes, Write: t.op == "write", Random: t.pattern == "random",
		Bytes: t.bytes, Depth: t.depth, Time: d,
	}
	if r.lane != nil {
		r.lane.now.Store(r.volume)
	}
	if r.path == pathExt4 {
		o.Area, o.Direct = ext4Area(), true
	}
	before := cpucycles.ProcessTime()
	if a, err = s.load.Do(o); err != nil {
		return a, 0, fmt.Errorf("volume: %s, %s: %w", r.path, r.kernel, err)
	}
	used := cpucycles.ProcessTime() - before
	return a, float64(used) * cpucycles.Clock() / float64(a.Bytes), nil
}

// makeExt4 puts a file system into both volumes, and has the load use a file in
// each.
func (s *stage) makeExt4() error {
	s.onExt4 = true
	null, err := makeExt4(s.load.Holds(1))
	if err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	defer null.Close()
	inSerpent, err := makeExt4(s.load.Holds(2))
	if err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	defer inSerpent.Close()
	if err := s.load.Close(); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	if s.load, err = load.Start(s.program(), s.file, null, inSerpent); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	for _, r := range s.rivals(pathExt4)[:2] {
		r.lane.now.Store(r.volume)
		if err := s.fill(load.Inherited(r.file), ext4Area(), true); err != nil {
			return fmt.Errorf("volume: %w", err)
		}
	}
	return nil
}

// ext4Area leaves room for the file system's own blocks.
func ext4Area() int64 { return volumeBytes / 2 }

// haveExt4 reports whether the kernel can mount it and the machine can make it.
func haveExt4() bool {
	if _, err := findMkfs(); err != nil {
		return false
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return false
	}
	known, err := os.ReadFile("/proc/filesystems")
	return err == nil && slices.Contains(strings.Fields(string(known)), "ext4")
}

// namelessFile makes a file where load.Folder says.
func namelessFile(size int64) (f *os.File, storage string, err error) {
	folder, storage, err := load.Folder(3 * size)
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(folder)
	if f, err = os.Create(filepath.Join(folder, "file")); err != nil {
		return nil, "", err
	}
	return f, storage, f.Truncate(size)
}

// volumeTables has a row for each operation and size, and a column for each who
// did it.
func volumeTables(results []VolumeResult) (tables []*table) {
	way := func(x VolumeResult) string {
		if x.Path == pathFile { // beside those it is compared with
			x.Path = pathFuse
		}
		return x.Path + ", " + x.Pattern
	}
	for _, results := range byKernel(results, way) {
		add := func(what string, cell func(VolumeResult) string) {
			title := fmt.Sprintf("volume on %s, %s, %s", results[0].Storage, way(results[0]), what)
			tables = append(tables, newTable(title, "request", results, func(x VolumeResult) (row, column, _ string) {
				column = x.Kernel
				if x.Path == pathFile {
					column = pathFile
				}
				return fmt.Sprintf("%s %s x%d", x.Op, inUnits(x.Bytes), x.Depth), column, cell(x)
			}))
		}
		add("MB/s (10^6 bytes)", func(x VolumeResult) string { return fmt.Sprintf("%.0f", x.BytesPerSecond/1e6) })
		add("speed ratios to null", func(x VolumeResult) string { return asRatio(x.RatioToNull) })
		add("core cycles per byte more than null", func(x VolumeResult) string {
			if x.AddedCyclesPerByte == nil {
				return ""
			}
			return fmt.Sprintf("%.2f", *x.AddedCyclesPerByte)
		})
	}
	return tables
}
