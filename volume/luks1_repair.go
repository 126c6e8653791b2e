package volume

import "serpcrypt/volume/luks"

func (c *luks1Container) mend(confirm func(*FormatError) bool) (mended []string, commit func() error, err error) {
	h := *c.h
	for _, fault := range c.faults() {
		if fault.Slot == luks.NoSlot {
			return nil, nil, fault
		}
		before := h
		what := h.MendSlot(fault)
		switch {
		case what == "":
			return nil, nil, fault
		case h == before: // with another fault of the slot
		case !confirm(fault):
			h = before
		default:
			mended = append(mended, what)
		}
	}
	return mended, func() error { return c.save(&h) }, nil
}
